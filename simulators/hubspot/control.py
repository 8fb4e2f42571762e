"""The tests' side: what arrived, what is there, what shall go wrong. All under `/_sim/`, never recorded."""

from typing import Any, Final, Protocol
from urllib.parse import parse_qs

import msgspec

from simulators.hubspot.contacts import Answer
from simulators.hubspot.faults import Fault, Rule
from simulators.hubspot.service import Service

CONTROL_PREFIX: Final = "/_sim/"


class Door(Protocol):
    """The API's listening socket; control has a second one that stays open."""

    def open(self) -> None:
        """Accept connections from now on."""

    def shut(self) -> None:
        """Refuse connections from now on, and end those that there are."""


class SeedRow(msgspec.Struct):
    """One contact to put there."""

    properties: dict[str, str] = {}
    id: str | None = None


class SeedInput(msgspec.Struct, forbid_unknown_fields=True):
    """Contacts to put there: these, and `count` made-up ones."""

    contacts: list[SeedRow] = []
    count: int = 0


class FaultsInput(msgspec.Struct, forbid_unknown_fields=True):
    """Rules to append."""

    faults: list[Rule]


class Control:
    """Answers control requests."""

    def __init__(self, service: Service, door: Door) -> None:
        self._service = service
        self._door = door

    def handle(self, method: str, target: str, body: bytes) -> Answer:
        """One control request."""
        path, _, query = target.partition("?")
        options = {name: values[-1] for name, values in parse_qs(query).items()}
        try:
            return self._routed(method, path.removeprefix(CONTROL_PREFIX), options, body)
        except (msgspec.DecodeError, ValueError) as failure:
            return _json({"error": str(failure)}, status=400)

    def _routed(self, method: str, name: str, options: dict[str, str], body: bytes) -> Answer:
        service = self._service
        document: object
        match method, name:
            case "GET", "ledger":
                document = {"entries": service.ledger.entries(int(options.get("since", "0")))}
            case "GET", "stats":
                document = service.ledger.stats() | {"connections": service.connections}
            case "GET", "contacts":
                document = {"results": [self._shown(contact_id) for contact_id in service.contacts.by_id]}
            case "GET", _ if name.startswith("contacts/") and name[9:] in service.contacts.by_id:
                document = self._shown(name[9:])
            case "GET", "faults":
                document = {"faults": service.script.rules()}
            case "DELETE", "faults":
                service.script.clear()
                self._door.open()
                document = {"faults": []}
            case "POST", "faults":
                document = self._add_faults(body)
            case "POST", "seed":
                document = self._seed(body)
            case "POST", "reset":
                service.reset()
                self._door.open()
                document = {"reset": True}
            case _:
                return _json({"error": "no such control"}, status=404)
        return _json(document)

    def _shown(self, contact_id: str) -> dict[str, Any]:
        contact = self._service.contacts.by_id[contact_id]
        shown = self._service.contacts.document(contact, tuple(contact.properties))
        return shown | {"version": contact.version}

    def _add_faults(self, body: bytes) -> dict[str, Any]:
        given = msgspec.json.decode(body, type=FaultsInput)
        for rule in given.faults:
            if rule.fault is Fault.REFUSE:
                self._door.shut()
            else:
                self._service.script.add(rule)
        return {"faults": self._service.script.rules()}

    def _seed(self, body: bytes) -> dict[str, Any]:
        given = msgspec.json.decode(body, type=SeedInput)
        rows: list[tuple[str | None, dict[str, str]]] = [(row.id, row.properties) for row in given.contacts]
        start = len(self._service.contacts.by_id)
        for number in range(start, start + given.count):
            made_up = {"email": f"person{number}@example.com", "firstname": "Person", "lastname": str(number)}
            rows.append((None, made_up))
        return {"ids": self._service.contacts.seed(rows)}


def _json(document: object, *, status: int = 200) -> Answer:
    return Answer(status, msgspec.json.encode(document))
