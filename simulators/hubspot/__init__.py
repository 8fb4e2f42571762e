"""A stand-in for HubSpot's contacts API, with a ledger of what arrived and a menu of faults.

Shapes follow the vendor's public documentation of CRM v3 contacts: paths, `properties` bodies, error bodies,
rate-limit headers. It is a simulator: no associations, no search, no batch, no property types.
"""
