"""Where a secret goes, and that it is never shown on the way."""

import pytest

from doonce.base.errors import Invalid
from doonce.base.secrets import Secret
from doonce.catalog.auth import secret_headers
from doonce.catalog.model import Auth, AuthScheme

BEARER = Auth(scheme=AuthScheme.HEADER, header="Authorization", prefix="Bearer ")
BASIC = Auth(scheme=AuthScheme.BASIC, header="Authorization", prefix="")
NOBODY = Auth(scheme=AuthScheme.NONE, header="", prefix="")


def test_a_header_has_its_prefix() -> None:
    headers = secret_headers(BEARER, Secret("t0k3n"))
    assert headers["Authorization"].reveal() == "Bearer t0k3n"
    assert "t0k3n" not in repr(headers)


def test_basic_is_encoded() -> None:
    assert secret_headers(BASIC, Secret("ann:ä"))["Authorization"].reveal() == "Basic YW5uOsOk"


def test_no_scheme_no_secret() -> None:
    assert secret_headers(NOBODY, None) == {}


@pytest.mark.parametrize(
    "auth, secret",
    [
        (BEARER, None),
        (BASIC, None),
        (NOBODY, Secret("x")),
        (BASIC, Secret("no-colon")),
        (BEARER, Secret("a\r\nb: c")),
        (BEARER, Secret("token\n")),
        (BEARER, Secret("tökén")),
    ],
)
def test_an_unfit_secret_is_refused_without_being_shown(auth: Auth, secret: Secret | None) -> None:
    with pytest.raises(Invalid) as refused:
        secret_headers(auth, secret)
    if secret is not None:
        assert secret.reveal() not in refused.value.message + refused.value.hint
