"""Transactions over SQL: an engine URL in, durable, fenced, batched commits out.

May import `base` only. Nothing above a `store.py` writes SQL.
"""
