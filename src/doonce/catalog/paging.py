"""Reading a window page by page: the request of a page, and where an answer names the next one. Pure and total."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from msgspec import UNSET
from msgspec.structs import replace

from doonce.base.errors import Invalid
from doonce.base.limits import check_text
from doonce.catalog.compile import BindingView
from doonce.catalog.exchange import FrozenRequest, Response
from doonce.catalog.extraction import Answer
from doonce.catalog.pointers import ABSENT, Found, lookup
from doonce.catalog.render import build_request
from doonce.catalog.templates import TARGET_BYTES_MAX
from doonce.catalog.webhooks import EventRule, PageCursor, Reconciliation, Webhook
from doonce.catalog.windows import Window, filled, references_of, values_of

CURSOR_BYTES_MAX: Final = 2_048
"""What names a page; it has to fit into a request's target, percent-encoded."""


@dataclass(frozen=True, slots=True)
class Unpaged:
    """Why an answer does not say whether, or where, there is another page."""

    reason: str


def page_request(
    view: BindingView, reconciliation: Reconciliation, window: Window, cursor: str | None
) -> FrozenRequest:
    """The read of one page: the operation's own request, and the declared parameters with their values.

    Equal arguments give equal bytes. Raises `Invalid` where the target would be over its bound.
    """
    operation = view.operations[reconciliation.operation]
    parameters = {f"parameter.{name}": value for name, value in view.document.parameters.items()}
    request = build_request(view, operation, {}, parameters)
    values = values_of(window, reconciliation.time_format, cursor)
    added = "&".join(
        f"{quote(name, safe='')}={filled(text, values)}"
        for name, text in sorted(reconciliation.query.items())
        if references_of(text) <= values.keys()
    )
    target = f"{request.target}{'&' if operation.target.query else '?'}{added}" if added else request.target
    if len(target) > TARGET_BYTES_MAX:
        raise Invalid(f"the page's target has {len(target)} bytes; at most {TARGET_BYTES_MAX} are allowed")
    return replace(request, target=target)


def page_rule(webhook: Webhook, reconciliation: Reconciliation) -> EventRule:
    """Which events a page tells of: as the webhook's own, but for the list that they stand in (PROTOCOL I2)."""
    own = webhook.events
    return replace(
        own,
        each=reconciliation.items,
        type=reconciliation.type or own.type,
        identity=reconciliation.identity or own.identity,
        object_id=reconciliation.object_id or own.object_id,
    )


def next_cursor(reconciliation: Reconciliation, response: Response) -> str | Unpaged | None:
    """What names the next page, None where this one is the last."""
    answer = Answer(response, bytes_max=len(response.body))
    more = reconciliation.more
    if more is not None and not answer.holds(more):
        said = more.equals is UNSET or answer.at(more.json, more.header) is not ABSENT
        return None if said else Unpaged("it does not say whether there is another page")
    if reconciliation.cursor is None:
        return None
    found = _found(reconciliation.cursor, answer, reconciliation.items)
    if found is ABSENT or found is None or found == "":
        return None if more is None else Unpaged("it says that there is another page, and not which")
    if isinstance(found, bool) or not isinstance(found, str | int):
        return Unpaged("what names the next page is neither a text nor a whole number")
    try:
        return check_text("the cursor", str(found), CURSOR_BYTES_MAX)
    except Invalid as fault:
        return Unpaged(f"what names the next page cannot be sent: {fault.message}")


def _found(cursor: PageCursor, answer: Answer, items: str) -> Found:
    if cursor.last_item is None:
        return answer.at(cursor.json, cursor.header)
    listed = answer.at(items, None)
    if not isinstance(listed, list | tuple) or not listed:
        return ABSENT
    return lookup(listed[-1], cursor.last_item)
