"""The bytes of a request: what was asked for, what is necessary, nothing that changes its meaning."""

import traceback

import pytest

from doonce.base.errors import Invalid
from doonce.base.secrets import Secret
from doonce.http import Request
from doonce.http.origins import parse_origin
from doonce.http.serialize import REQUEST_BODY_BYTES_MAX, REQUEST_HEAD_BYTES_MAX, serialize

ORIGIN = "https://api.example.com:8443"
TOKEN = "Bearer very-secret-token"


def raw(
    method: str = "GET",
    target: str = "/",
    headers: tuple[tuple[str, str], ...] = (),
    body: bytes = b"",
    secrets: dict[str, Secret] | None = None,
) -> bytes:
    request = Request(method, ORIGIN, target, headers, body)
    return serialize(request, parse_origin(ORIGIN), secrets or {}).reveal_bytes()


def test_a_get_has_a_host_and_nothing_else() -> None:
    assert raw() == b"GET / HTTP/1.1\r\nHost: api.example.com:8443\r\n\r\n"


def test_headers_keep_their_order_and_case_and_secrets_come_last() -> None:
    headers = (("Content-Type", "application/json"), ("x-a", "1"), ("x-a", "2"))
    assert raw("PATCH", "/a/b?c=d", headers, b"{}", {"Authorization": Secret(TOKEN)}) == (
        b"PATCH /a/b?c=d HTTP/1.1\r\nHost: api.example.com:8443\r\nContent-Type: application/json\r\n"
        b"x-a: 1\r\nx-a: 2\r\nAuthorization: Bearer very-secret-token\r\nContent-Length: 2\r\n\r\n{}"
    )


@pytest.mark.parametrize(
    "method, body, expected",
    [
        ("POST", b"", True),
        ("PUT", b"", True),
        ("PATCH", b"", True),
        ("DELETE", b"", False),
        ("DELETE", b"x", True),
    ],
)
def test_the_length_is_stated_where_a_body_is_expected_or_present(
    method: str, body: bytes, expected: bool
) -> None:
    assert (b"\r\nContent-Length: %d\r\n" % len(body) in raw(method, body=body)) is expected


BAD_TEXT = ["a\r\nEvil: x", "a\nb", "a\rb", "a\x00b", "a\x7fb", "é", "a\u2028b", "\ud800", "a\x85b"]


@pytest.mark.parametrize("bad", [*BAD_TEXT, "", "GET /x", "CONNECT", "connect", "TRACE", "G(T", "A" * 257])
def test_a_method_cannot_carry_anything_else(bad: str) -> None:
    with pytest.raises(Invalid):
        raw(bad)


@pytest.mark.parametrize(
    "bad",
    [
        *(f"/{bad}" for bad in BAD_TEXT),
        "",
        "x",
        "*",
        "http://other/",
        "/a b",
        "/a#b",
        "/a\tb",
        "/" + "a" * 16_385,
    ],
)
def test_a_target_cannot_carry_anything_else(bad: str) -> None:
    with pytest.raises(Invalid):
        raw(target=bad)


@pytest.mark.parametrize("bad", [*BAD_TEXT, " a", "a ", "\ta"])
def test_a_value_cannot_carry_anything_else(bad: str) -> None:
    with pytest.raises(Invalid):
        raw(headers=(("X-A", bad),))


@pytest.mark.parametrize("bad", [*BAD_TEXT, "", "X A", "X:", "X-A: b\r\nY"])
def test_a_name_cannot_carry_anything_else(bad: str) -> None:
    with pytest.raises(Invalid):
        raw(headers=((bad, "v"),))
    with pytest.raises(Invalid):
        raw(secrets={bad: Secret("v")})


@pytest.mark.parametrize(
    "name",
    ["Host", "host", "Content-Length", "transfer-encoding", "Connection", "Upgrade", "TE", "Keep-Alive"],
)
def test_framing_belongs_to_the_client(name: str) -> None:
    with pytest.raises(Invalid):
        raw(headers=((name, "x"),))
    with pytest.raises(Invalid):
        raw(secrets={name: Secret("x")})


@pytest.mark.parametrize("name", ["X-A", "x-a"])
def test_a_secret_does_not_stand_beside_an_open_header(name: str) -> None:
    with pytest.raises(Invalid):
        raw(headers=((name, "open"),), secrets={"X-A": Secret("hidden")})


def test_head_and_body_are_bounded() -> None:
    room = REQUEST_HEAD_BYTES_MAX - len(raw()) + 4 - len("X-A: \r\n")
    assert len(raw(headers=(("X-A", "v" * room),))) == REQUEST_HEAD_BYTES_MAX + 4
    with pytest.raises(Invalid):
        raw(headers=(("X-A", "v" * (room + 1)),))
    assert raw("POST", body=bytes(REQUEST_BODY_BYTES_MAX))
    with pytest.raises(Invalid):
        raw("POST", body=bytes(REQUEST_BODY_BYTES_MAX + 1))


@pytest.mark.parametrize("bad", ["very-secret\r\nEvil: x", "very-secret-é", " very-secret"])
def test_a_secret_that_cannot_be_sent_does_not_show_itself(bad: str) -> None:
    with pytest.raises(Invalid) as caught:
        raw(secrets={"Authorization": Secret(bad)})
    assert "very-secret" not in "".join(traceback.format_exception(caught.value))
    assert "Authorization" in str(caught.value)


def test_what_is_ready_to_be_sent_does_not_show_itself_either() -> None:
    request = Request("GET", ORIGIN, "/", (("X-A", "personal"),), b"personal")
    sealed = serialize(request, parse_origin(ORIGIN), {"Authorization": Secret(TOKEN)})
    assert "very-secret" not in f"{sealed!r} {sealed}"
    assert "personal" not in repr(request)
