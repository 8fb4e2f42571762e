"""Where a principal's secret goes in a request; the only place in this folder that touches one."""

from base64 import b64encode
from typing import assert_never

from doonce.base.errors import Invalid
from doonce.base.secrets import Secret
from doonce.catalog.model import Auth, AuthScheme


def secret_headers(auth: Auth, secret: Secret | None) -> dict[str, Secret]:
    """Return the headers that carry the secret, still as secrets.

    A basic secret is `user:password`. Raises `Invalid`, which never shows it, where the scheme needs a secret
    and there is none, where it takes none, and for a secret that cannot stand in a header.
    """
    match auth.scheme:
        case AuthScheme.NONE:
            if secret is not None:
                raise Invalid("this provider takes no secret", hint="bind a principal without one")
            return {}
        case AuthScheme.HEADER:
            return {auth.header: Secret(auth.prefix + _checked(secret).reveal())}
        case AuthScheme.BASIC:
            raw = _needed(secret).reveal_bytes()
            if b":" not in raw:
                raise Invalid("a basic secret is user:password", hint="store both, joined by a colon")
            return {auth.header: Secret(b"Basic " + b64encode(raw))}
        case _:
            assert_never(auth.scheme)


def _needed(secret: Secret | None) -> Secret:
    if secret is None:
        raise Invalid("this provider needs a secret", hint="give the principal its credential")
    return secret


def _checked(secret: Secret | None) -> Secret:
    text = _needed(secret).reveal()
    if not (text.isascii() and text.isprintable() and text == text.strip()):
        raise Invalid("the secret cannot stand in a header", hint="check for line ends at its end")
    return _needed(secret)
