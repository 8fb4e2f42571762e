"""Shipped proofs: `doonce conformance URL` shows on the user's own database that the protocol holds there.

It stands above everything else, since it works through the same functions as the service; nothing imports it.
"""
