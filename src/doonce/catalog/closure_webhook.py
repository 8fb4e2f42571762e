"""What must hold of a webhook: its verifier proves something, and a loss is somebody's to find (PROTOCOL I4)."""

import re
from collections.abc import Mapping
from typing import Final

from doonce.base.errors import Invalid
from doonce.base.limits import LIMITS, check_text
from doonce.base.patterns import is_pattern
from doonce.catalog.bounds import WEBHOOKS_MAX
from doonce.catalog.closure_answers import check_condition
from doonce.catalog.closure_events import check_event_objects
from doonce.catalog.closure_reconciliation import check_reconciliation
from doonce.catalog.model import OperationContract, ParameterKind
from doonce.catalog.pointers import parse_pointer
from doonce.catalog.reading import Place
from doonce.catalog.signed_content import HEADER_NAME, Content, Source, parse_content
from doonce.catalog.webhooks import (
    Algorithm,
    BodyChallenge,
    BodyFormat,
    HeaderPart,
    Redelivery,
    Route,
    SecretForm,
    SignatureEncoding,
    Verifier,
    Webhook,
)

_URL: Final = re.compile(r"https?://[A-Za-z0-9.:\[\]-]{1,255}(/[!$&-;=@-Z_a-z~%]*)?", re.ASCII)
_CONTENT_TYPES: Final = ("application/json", "text/plain")
_KEY_FORMS: Final = {
    Algorithm.ED25519: (SecretForm.HEX, SecretForm.BASE64),
    Algorithm.ECDSA_P256_SHA256: (SecretForm.BASE64,),
    Algorithm.SHARED_TOKEN: (SecretForm.TEXT,),
    Algorithm.BASIC: (SecretForm.TEXT,),
}
"""How the key of an algorithm may be spelled, where not every way makes sense."""


def check_webhooks(
    place: Place,
    webhooks: Mapping[str, Webhook],
    operations: Mapping[str, OperationContract],
    objects: Mapping[str, tuple[str, ...]],
    parameters: Mapping[str, ParameterKind],
) -> None:
    """Raise one `Invalid` for the first webhook that would believe what nothing proves, or that contradicts itself."""
    if len(webhooks) > WEBHOOKS_MAX:
        raise place.fault("webhooks", f"a pack has at most {WEBHOOKS_MAX} webhooks")
    for name, webhook in webhooks.items():
        inner = place.inner("webhooks").inner(name)
        _check_verifier(inner.inner("verifier"), webhook.verifier)
        _check_delivery(inner, webhook)
        _check_events(inner.inner("events"), webhook)
        check_event_objects(inner.inner("events"), webhook.events, objects, operations)
        if webhook.body_challenge is not None:
            _check_body_challenge(inner.inner("challenge"), webhook.body_challenge)
        if webhook.reconciliation is not None:
            check_reconciliation(inner, webhook, webhook.reconciliation, operations, parameters)


def check_routes(place: Place, routes: Mapping[str, Route], webhooks: Mapping[str, Webhook]) -> None:
    """Raise one `Invalid` for the first route that cannot verify, or whose losses nobody would ever find."""
    if {*routes} != {*webhooks}:
        raise place.fault("webhooks", "routes and webhooks are not the same")
    for name, route in routes.items():
        inner, webhook = place.inner("webhooks").inner(name), webhooks[name]
        if signs_url(webhook.verifier) != (route.url is not None):
            what = "missing: the provider signs it" if route.url is None else "nothing signs it"
            raise inner.fault(
                "url", what, 'write the address as the provider knows it, "https://…", or nothing'
            )
        if route.url is not None and _URL.fullmatch(route.url) is None:
            raise inner.fault(
                "url", "is not a public address", 'write "https://host/path", without query and fragment'
            )
        if _loses(webhook) and route.accepts_loss is None:
            raise inner.fault(
                "accepts_loss",
                "a delivery that is lost is never sent again, and nothing is declared that would find it",
                'write accepts_loss = "why that is acceptable", or use a pack with a reconciliation',
            )
        if not _loses(webhook) and route.accepts_loss is not None:
            raise inner.fault("accepts_loss", "what is lost here is sent again, or found", "remove it")
        _check_handled(inner, route)


def _check_handled(place: Place, route: Route) -> None:
    for pattern in route.handle:
        check_text(f"{place.file}: [{place.table}] handle", pattern, LIMITS.name_bytes_max)
        if not is_pattern(pattern):
            raise place.fault(
                "handle",
                f"{pattern!r} has a * that is not its end",
                'write "invoice.*", or every type by itself',
            )
    if len({*route.handle}) != len(route.handle):
        raise place.fault("handle", "names a type twice", "write each once")
    for field, given in (("push", route.push), ("hydrate", route.hydrate)):
        if given and not route.handle:
            raise place.fault(field, "no event is handed over", 'write handle = ["*"], or remove it')


def _loses(webhook: Webhook) -> bool:
    return webhook.redelivery is Redelivery.NONE and webhook.reconciliation is None


def signs_url(verifier: Verifier) -> bool:
    """Say whether a verifier needs to know under which URL the provider knows the route."""
    return verifier.content is not None and Source.URL in parse_content(verifier.content)


def _check_verifier(place: Place, verifier: Verifier) -> None:
    _check_header_part(place, verifier.proof)
    forms = _KEY_FORMS.get(verifier.algorithm)
    if forms is not None and verifier.secret not in forms:
        choices = " or ".join(f'"{form.value}"' for form in forms)
        raise place.fault(
            "secret", f"a key for {verifier.algorithm.value} is not spelled so", f"write {choices}"
        )
    if not verifier.algorithm.signs:
        _check_unsigned(place, verifier)
        return
    if verifier.content is None or verifier.encoding is None:
        raise place.fault("content", "missing: what is signed?", 'write content = "{body}"')
    try:
        content = parse_content(verifier.content)
    except Invalid as fault:
        raise place.fault("content", fault.message, fault.hint) from None
    _check_covered(place, verifier, content)
    if verifier.algorithm is Algorithm.ECDSA_P256_SHA256 and verifier.encoding is SignatureEncoding.HEX:
        raise place.fault("encoding", "these signatures are DER, in base64", 'write "base64"')


def _check_unsigned(place: Place, verifier: Verifier) -> None:
    for field, value in (
        ("content", verifier.content),
        ("encoding", verifier.encoding),
        ("timestamp", verifier.timestamp),
        ("url_unescaped", verifier.url_unescaped or None),
        ("body_digest_query", verifier.body_digest_query),
    ):
        if value is not None:
            raise place.fault(field, f"{verifier.algorithm.value} signs nothing", "remove it")
    if verifier.proof.separator:
        raise place.fault("separator", "a shared secret is one value, not a list", "remove it")


def _check_covered(place: Place, verifier: Verifier, content: Content) -> None:
    """What a signature does not cover, anybody may have written."""
    has_url = Source.URL in content
    if verifier.body_digest_query is not None and not has_url:
        raise place.fault("body_digest_query", "the URL that has it is not signed", "put {url} into content")
    if not {Source.BODY, Source.SORTED_FORM} & {*content} and verifier.body_digest_query is None:
        raise place.fault("content", "the body is not signed", "put {body} into content")
    if verifier.url_unescaped and not has_url:
        raise place.fault("url_unescaped", "the URL is not signed", "remove it")
    if not verifier.url_unescaped.isascii():
        raise place.fault("url_unescaped", "has a character that no percent-encoding is", "ASCII only")
    if (verifier.timestamp is not None) != (Source.TIMESTAMP in content):
        raise place.fault(
            "timestamp",
            "a timestamp is checked if and only if it is signed",
            "declare [….verifier.timestamp] and put {timestamp} into content, or neither",
        )
    if verifier.timestamp is not None:
        _check_header_part(place.inner("timestamp"), verifier.timestamp.source)


def _check_header_part(place: Place, part: HeaderPart) -> None:
    if HEADER_NAME.fullmatch(part.header) is None:
        raise place.fault("header", f"{part.header!r} is not a header's name in lower case")
    if part.separator and part.separator in part.prefix:
        raise place.fault("prefix", "holds the separator, so no item can begin with it", "choose another")


def _check_delivery(place: Place, webhook: Webhook) -> None:
    answers = webhook.answers
    if answers.overload_status not in (429, *range(500, 600)):
        raise place.inner("answer").fault("overload_status", "does not say to send again", "write 503 or 429")
    if answers.content_type not in _CONTENT_TYPES:
        raise place.inner("answer").fault(
            "content_type", "is not an answer's type", f"write one of {', '.join(_CONTENT_TYPES)}"
        )
    if (webhook.redelivery is Redelivery.WINDOW) != (webhook.redelivery_window_us is not None):
        raise place.fault(
            "redelivery_window", 'goes together with redelivery = "window"', "write both or neither"
        )
    if webhook.delivery_id is not None and HEADER_NAME.fullmatch(webhook.delivery_id) is None:
        raise place.fault("delivery_id", f"{webhook.delivery_id!r} is not a header's name in lower case")


def _check_events(place: Place, webhook: Webhook) -> None:
    rule = webhook.events
    pointers = {"each": rule.each, "type": rule.type}
    pointers |= {
        f"{field} {text}": text for field in ("identity", "object_id") for text in getattr(rule, field)
    }
    for field, pointer in pointers.items():
        if pointer is None:
            continue
        if rule.format is BodyFormat.RAW:
            raise place.fault(field, "a raw body has no places", 'write format = "json", or remove it')
        try:
            parse_pointer(pointer)
        except Invalid as fault:
            raise place.fault(field, fault.message, fault.hint) from None
    if rule.type_header is not None:
        if rule.type is not None:
            raise place.fault("type_header", "the type is in the event already", "remove one of the two")
        if HEADER_NAME.fullmatch(rule.type_header) is None:
            raise place.fault("type_header", f"{rule.type_header!r} is not a header's name in lower case")
    if rule.identity:
        if rule.stable_bodies:
            raise place.fault("stable_bodies", "the identity does not need it", "remove it")
        return
    if rule.each is not None:
        raise place.fault("identity", "a batch may be regrouped: what names one event?", 'write ["/id"]')
    if webhook.delivery_id is None and not rule.stable_bodies:
        raise place.fault(
            "identity",
            "nothing names an event, so a redelivery would be another one",
            'write identity = ["/id"], declare delivery_id, or stable_bodies = true if redeliveries are the same bytes',
        )
    if webhook.delivery_id is not None and rule.stable_bodies:
        raise place.fault("stable_bodies", "the delivery id names the event", "remove it")


def _check_body_challenge(place: Place, challenge: BodyChallenge) -> None:
    if not challenge.when:
        raise place.fault(
            "when",
            "every delivery would be taken for a challenge",
            'write [{ json = "/type", equals = "…" }]',
        )
    for condition in challenge.when:
        check_condition(place, "when", condition)
        if condition.json is None:
            raise place.fault("when", "a challenge is known by its body", 'write { json = "/pointer" }')
    if (challenge.echo is None) == (challenge.constant is None):
        raise place.fault("echo", "exactly one answer must be given", "write echo or constant")
    if challenge.echo is not None:
        try:
            parse_pointer(challenge.echo)
        except Invalid as fault:
            raise place.fault("echo", fault.message, fault.hint) from None
        if challenge.content_type != "text/plain":
            raise place.fault(
                "content_type", "what a sender chose is echoed as plain text only", 'write "text/plain"'
            )
    if challenge.content_type not in _CONTENT_TYPES:
        raise place.fault(
            "content_type", "is not an answer's type", f"write one of {', '.join(_CONTENT_TYPES)}"
        )
