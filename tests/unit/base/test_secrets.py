"""A secret is not to be seen anywhere but where it is revealed."""

import copy
import dataclasses
import json
import logging
import pickle
import traceback

import msgspec
import pytest
import structlog

from doonce.base.errors import DoonceError, Invalid
from doonce.base.json import canonical, dumps
from doonce.base.secrets import Secret

CLEAR = "hunter2-and-more"


@dataclasses.dataclass(frozen=True)
class Holder:
    name: str
    token: Secret


@pytest.fixture(params=[CLEAR, CLEAR.encode()], ids=["text", "bytes"])
def secret(request: pytest.FixtureRequest) -> Secret:
    return Secret(request.param)


def test_it_shows_itself_where_it_is_asked_to(secret: Secret) -> None:
    assert secret.reveal() == CLEAR
    assert secret.reveal_bytes() == CLEAR.encode()


def test_printing_does_not_show_it(secret: Secret) -> None:
    shown = [
        repr(secret),
        str(secret),
        f"{secret}",
        f"{secret!r:>40}",
        f"{secret:>40}",
        f"{secret!s}",
        "%s %r" % (secret, secret),  # noqa: UP031  # the form that logging uses
        format(secret, "x"),
        "{0} {0!r}".format(secret),  # noqa: UP032
        str([secret]),
        repr({"token": secret}),
        repr(Holder("a", secret)),
        str(DoonceError("m", hint="h").with_traceback(None)),
        str(dir(secret)),
    ]
    assert CLEAR not in " ".join(shown)
    assert "[secret]" in shown[0]


def test_serializing_it_is_refused(secret: Secret) -> None:
    with pytest.raises(TypeError):
        json.dumps({"token": secret})
    with pytest.raises(TypeError):
        msgspec.json.encode({"token": secret})
    with pytest.raises(TypeError):
        msgspec.msgpack.encode(Holder("a", secret))
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="not serialized"):
            pickle.dumps(secret, protocol)
    for write in (dumps, canonical):
        with pytest.raises(Invalid) as refused:
            write({"token": secret})  # type: ignore[dict-item]  # wrong on purpose
        assert CLEAR not in str(refused.value)
    with pytest.raises(TypeError):
        vars(secret)


def test_a_traceback_with_its_locals_does_not_show_it(secret: Secret) -> None:
    def fail(token: Secret) -> None:
        held = Holder("a", token)
        raise RuntimeError(f"no {token} {held}")

    with pytest.raises(RuntimeError) as failed:
        fail(secret)
    shown = "".join(traceback.TracebackException.from_exception(failed.value, capture_locals=True).format())
    assert "held" in shown
    assert CLEAR not in shown


def test_logging_does_not_show_it(secret: Secret, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        logging.getLogger("t").info("token %s %r", secret, secret, extra={"token": secret})
    rendered = structlog.processors.JSONRenderer(default=repr)(None, "info", {"token": secret})
    assert CLEAR not in caplog.text + str(rendered)
    assert "[secret]" in caplog.text


def test_copies_are_the_same_secret(secret: Secret) -> None:
    assert copy.copy(secret) is secret
    assert copy.deepcopy([secret])[0] is secret
    assert dataclasses.asdict(Holder("a", secret))["token"] is secret


def test_it_compares_by_value_and_is_no_key_of_anything(secret: Secret) -> None:
    assert secret == Secret(CLEAR)
    assert secret != Secret("other")
    assert secret != CLEAR
    with pytest.raises(TypeError):
        hash(secret)


def test_it_does_not_change(secret: Secret) -> None:
    for name in ("_value", "other"):
        with pytest.raises(AttributeError):
            setattr(secret, name, b"x")
        with pytest.raises(AttributeError):
            delattr(secret, name)
    assert secret.reveal() == CLEAR


def test_an_empty_one_and_one_that_is_no_text_are_refused() -> None:
    for empty in ("", b""):
        with pytest.raises(Invalid):
            Secret(empty)
    with pytest.raises(Invalid) as refused:
        Secret("\ud800" + CLEAR)
    assert CLEAR not in str(refused.value)
    binary = Secret(b"\xff" + CLEAR.encode())
    assert binary.reveal_bytes()[0] == 0xFF
    with pytest.raises(Invalid) as refused:
        binary.reveal()
    assert CLEAR not in str(refused.value)
