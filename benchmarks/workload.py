"""The effect that everybody makes: the title of a contact, one contact an effect, so that none waits for another."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

CREDENTIAL = "benchmark-credential"
TITLE = "Head of procurement"


def target_of(contact: str) -> str:
    """Where a contact is."""
    return f"/crm/v3/objects/contacts/{contact}"


def control(control_url: str, method: str, name: str, document: object = None) -> Any:
    """One request to the simulator's own side."""
    body = None if document is None else json.dumps(document).encode()
    request = urllib.request.Request(f"{control_url}/_sim/{name}", body, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def make_contacts(control_url: str, number: int) -> list[str]:
    """Contacts on the simulator, and their ids."""
    ids: list[str] = control(control_url, "POST", "seed", {"count": number})["ids"]
    return ids


def arrivals(control_url: str) -> list[dict[str, Any]]:
    """What the simulator's ledger says of PATCH requests: the outside witness."""
    entries = control(control_url, "GET", "ledger")["entries"]
    return [entry for entry in entries if entry["method"] == "PATCH"]


def check_arrivals(control_url: str, expected: int) -> None:
    """Fail the measurement unless the simulator saw and carried out exactly so many, each contact once."""
    seen = arrivals(control_url)
    targets = {entry["target"] for entry in seen}
    committed = sum(1 for entry in seen if entry["committed"])
    if not len(seen) == len(targets) == committed == expected:
        raise AssertionError(
            f"expected {expected} effects: {len(seen)} requests arrived, {committed} took effect, "
            f"on {len(targets)} contacts"
        )
