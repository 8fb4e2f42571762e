"""Contacts as the vendor documents them: what a request changes, and what it is answered.

Nothing here waits or touches a socket: a decoded request goes in, an `Answer` comes out. Whether the answer
ever reaches the caller is the business of the server and its faults.
"""

import datetime
import itertools
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qs, unquote

import msgspec

CONTACTS_PATH: Final = "/crm/v3/objects/contacts"
PUT_PATH: Final = "/sim/objects/contacts"
"""Not the vendor's: the same contacts with a PUT that creates or replaces, for tests of that method.

It keeps RFC 9110's preconditions: `If-None-Match: *`, and `If-Match` with the ETag that its answers carry.
"""

_UNCONDITIONAL: Final[Mapping[str, str]] = {}
_READ_ONLY: Final = frozenset({"createdate", "hs_object_id", "lastmodifieddate"})
_DEFAULT_SHOWN: Final = ("createdate", "email", "firstname", "hs_object_id", "lastmodifieddate", "lastname")
_WRITABLE: Final = frozenset(
    {"address", "annualrevenue", "city", "company", "country", "email", "fax", "firstname", "hs_lead_status"}
    | {
        "hubspot_owner_id",
        "industry",
        "jobtitle",
        "lastname",
        "lifecyclestage",
        "mobilephone",
        "numemployees",
    }
    | {"phone", "salutation", "state", "website", "zip"}
)


class ContactInput(msgspec.Struct):
    """The body of a create or an update; values arrive as any scalar and are kept as text."""

    properties: dict[str, str | int | float | bool | None]
    associations: list[Any] = []


@dataclass(slots=True)
class Contact:
    """One contact; `version` counts its committed changes."""

    id: str
    properties: dict[str, str]
    created_at: str
    updated_at: str
    archived: bool = False
    version: int = 1


@dataclass(frozen=True, slots=True)
class Answer:
    """What the vendor would answer. `committed`: an effect happened; `body` is empty or one JSON document."""

    status: int
    body: bytes = b""
    committed: bool = False
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class Contacts:
    """All contacts of one portal, by id and by e-mail address."""

    now: Callable[[], datetime.datetime]
    known_properties: set[str] = field(default_factory=lambda: set(_WRITABLE))
    by_id: dict[str, Contact] = field(default_factory=dict)
    id_by_email: dict[str, str] = field(default_factory=dict)
    _ids: "itertools.count[int]" = field(default_factory=lambda: itertools.count(501))

    def handle(
        self, method: str, target: str, body: bytes, conditions: Mapping[str, str] = _UNCONDITIONAL
    ) -> Answer:
        """Answer one authenticated request, with its effect done."""
        path, _, query = target.partition("?")
        for base in (CONTACTS_PATH, PUT_PATH):
            if path == base and method == "POST":
                return self._create(body)
            if path.startswith(base + "/"):
                key = unquote(path[len(base) + 1 :])
                return self._on_one(method, key, query, body, conditions if base == PUT_PATH else None)
        return error(404, "OBJECT_NOT_FOUND", "resource not found")

    def seed(self, rows: Iterable[tuple[str | None, dict[str, str]]]) -> list[str]:
        """Put contacts there without a request; a property named here becomes a known one."""
        ids = []
        for wanted, properties in rows:
            self.known_properties.update(properties.keys() - _READ_ONLY)
            ids.append(self._insert(wanted, properties).id)
        return ids

    # -- one contact -------------------------------------------------------------------------------------

    def _on_one(
        self, method: str, key: str, query: str, body: bytes, conditions: Mapping[str, str] | None
    ) -> Answer:
        """`conditions` is None on the vendor's own path."""
        options = parse_qs(query) if query else {}
        if "email" in options.get("idProperty", ()):
            key = self.id_by_email.get(key.lower(), "")
        contact = self.by_id.get(key)
        if method == "PUT" and conditions is not None:
            return self._put_if(key, contact, body, conditions)
        if contact is None or contact.archived:
            # the vendor answers a second DELETE as it answered the first
            if method == "DELETE":
                return Answer(204)
            return error(404, "OBJECT_NOT_FOUND", "resource not found")
        if method == "GET":
            return Answer(200, self.shown(contact, _asked(options)))
        if method == "PATCH":
            return self._update(contact, body)
        if method == "DELETE":
            contact.archived = True
            contact.version += 1
            contact.updated_at = self._timestamp()
            self.id_by_email.pop(contact.properties.get("email", ""), None)
            return Answer(204, committed=True)
        return error(
            405, "METHOD_NOT_ALLOWED", "HTTP 405 Method Not Allowed", (("Allow", "GET,PATCH,DELETE"),)
        )

    def _create(self, body: bytes) -> Answer:
        parsed = self._parsed(body)
        if isinstance(parsed, Answer):
            return parsed
        if conflict := self._email_taken(parsed, by_other_than=""):
            return conflict
        contact = self._insert(None, parsed)
        return Answer(201, self.shown(contact, tuple(parsed)), committed=True)

    def _update(self, contact: Contact, body: bytes) -> Answer:
        parsed = self._parsed(body)
        if isinstance(parsed, Answer):
            return parsed
        if "email" in parsed and (conflict := self._email_taken(parsed, by_other_than=contact.id)):
            return conflict
        self._change(contact, contact.properties | parsed)
        return Answer(200, self.shown(contact, tuple(parsed)), committed=True)

    def _put_if(
        self, key: str, contact: Contact | None, body: bytes, conditions: Mapping[str, str]
    ) -> Answer:
        there = contact is not None and not contact.archived
        expected = conditions.get("if-match")
        if there and conditions.get("if-none-match") == "*":
            return error(412, "PRECONDITION_FAILED", "the contact is there")
        if expected is not None and (contact is None or not there or expected != etag(contact)):
            return error(412, "PRECONDITION_FAILED", "the contact is another version")
        answer = self._put(key, contact, body)
        stored = self.by_id.get(key)
        if not answer.committed or stored is None:
            return answer
        return Answer(answer.status, answer.body, answer.committed, (("ETag", etag(stored)),))

    def _put(self, key: str, contact: Contact | None, body: bytes) -> Answer:
        parsed = self._parsed(body)
        if isinstance(parsed, Answer):
            return parsed
        if conflict := self._email_taken(parsed, by_other_than=key):
            return conflict
        if contact is None:
            contact = self._insert(key, parsed)
            return Answer(201, self.shown(contact, tuple(parsed)), committed=True)
        contact.archived = False
        self._change(contact, parsed)
        return Answer(200, self.shown(contact, tuple(parsed)), committed=True)

    # -- parts -------------------------------------------------------------------------------------------

    def shown(self, contact: Contact, asked: Iterable[str] = ()) -> bytes:
        """A contact as the API shows it: the default properties and those asked for."""
        return msgspec.json.encode(self.document(contact, asked))

    def document(self, contact: Contact, asked: Iterable[str] = ()) -> dict[str, Any]:
        """The same, not yet encoded."""
        names = dict.fromkeys((*_DEFAULT_SHOWN, *asked))
        built_in = {
            "createdate": contact.created_at,
            "hs_object_id": contact.id,
            "lastmodifieddate": contact.updated_at,
        }
        properties = {name: built_in.get(name) or contact.properties.get(name) for name in names}
        return {
            "id": contact.id,
            "properties": properties,
            "createdAt": contact.created_at,
            "updatedAt": contact.updated_at,
            "archived": contact.archived,
        }

    def _parsed(self, body: bytes) -> dict[str, str] | Answer:
        try:
            given = msgspec.json.decode(body, type=ContactInput)
        except msgspec.DecodeError as failure:
            return error(400, "VALIDATION_ERROR", f"Invalid input JSON on line 1: {failure}")
        for name in given.properties:
            if name in _READ_ONLY:
                return _invalid_property(name, "READ_ONLY_VALUE", f'"{name}" is a read only property')
            if name not in self.known_properties:
                return _invalid_property(name, "PROPERTY_DOESNT_EXIST", f'Property "{name}" does not exist')
        return {name: _as_text(value) for name, value in given.properties.items()}

    def _email_taken(self, properties: dict[str, str], *, by_other_than: str) -> Answer | None:
        holder = self.id_by_email.get(properties.get("email", "").lower())
        if holder is None or holder == by_other_than:
            return None
        return error(409, "CONFLICT", f"Contact already exists. Existing ID: {holder}")

    def _insert(self, wanted_id: str | None, properties: dict[str, str]) -> Contact:
        timestamp = self._timestamp()
        contact = Contact(wanted_id or self._next_id(), dict(properties), timestamp, timestamp)
        self.by_id[contact.id] = contact
        if email := properties.get("email"):
            self.id_by_email[email.lower()] = contact.id
        return contact

    def _next_id(self) -> str:
        return next(text for text in map(str, self._ids) if text not in self.by_id)

    def _change(self, contact: Contact, properties: dict[str, str]) -> None:
        if (old := contact.properties.get("email")) != (new := properties.get("email")):
            if old:
                self.id_by_email.pop(old.lower(), None)
            if new:
                self.id_by_email[new.lower()] = contact.id
        contact.properties = dict(properties)
        contact.version += 1
        contact.updated_at = self._timestamp()

    def _timestamp(self) -> str:
        return self.now().isoformat(timespec="milliseconds").replace("+00:00", "Z")


def etag(contact: Contact) -> str:
    """The strong validator of one version."""
    return f'"v{contact.version}"'


def error(
    status: int, category: str, message: str, headers: tuple[tuple[str, str], ...] = (), **more: object
) -> Answer:
    """An error in the vendor's form."""
    document = {
        "status": "error",
        "message": message,
        "correlationId": str(uuid.uuid4()),
        "category": category,
        **more,
    }
    return Answer(status, msgspec.json.encode(document), headers=headers)


def _invalid_property(name: str, code: str, message: str) -> Answer:
    detail = {"isValid": False, "message": message, "error": code, "name": name}
    return error(
        400,
        "VALIDATION_ERROR",
        f"Property values were not valid: [{msgspec.json.encode(detail).decode()}]",
        errors=[{"message": message, "code": code, "context": {"propertyName": [name]}}],
    )


def _asked(options: dict[str, list[str]]) -> tuple[str, ...]:
    return tuple(name for value in options.get("properties", ()) for name in value.split(",") if name)


def _as_text(value: str | float | bool | None) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
