"""What may be reached: declared origins, https, addresses that are global unicast unless allowed."""

import ipaddress

import pytest

from doonce.base.errors import Invalid
from doonce.http import PRIVATE_ALLOWED, EgressPolicy
from doonce.http.origins import Origin, parse_origin


@pytest.mark.parametrize(
    "text, origin, authority",
    [
        ("https://api.example.com", Origin("https", "api.example.com", 443), "api.example.com"),
        ("https://API.Example.com:443", Origin("https", "api.example.com", 443), "api.example.com"),
        ("http://api.example.com:443", Origin("http", "api.example.com", 443), "api.example.com:443"),
        ("http://127.0.0.1:80", Origin("http", "127.0.0.1", 80), "127.0.0.1"),
        ("https://[2001:DB8:0::1]:8443", Origin("https", "2001:db8::1", 8443), "[2001:db8::1]:8443"),
        ("https://[::1]", Origin("https", "::1", 443), "[::1]"),
    ],
)
def test_an_origin_has_one_canonical_form(text: str, origin: Origin, authority: str) -> None:
    assert parse_origin(text) == origin
    assert origin.authority == authority
    assert parse_origin(str(origin)) == origin


@pytest.mark.parametrize(
    "text",
    [
        "",
        "api.example.com",
        "//api.example.com",
        "ftp://api.example.com",
        "HTTPS://api.example.com",
        "https://",
        "https://api.example.com/",
        "https://api.example.com?x",
        "https://user@api.example.com",
        "https://user:pw@api.example.com",
        "https://api.example.com:0",
        "https://api.example.com:65536",
        "https://api.example.com:",
        "https://api example.com",
        "https://api.example.com\r\nX: y",
        "https://api.example.com\n",
        "https://bücher.example",
        "https://-a.example",
        "https://a..example",
        "https://2130706433",
        "https://0x7f000001",
        "https://127.1",
        "https://127.0.0.01",
        "https://1.2.3.4.5",
        "https://[fe80::1%eth0]",
        "https://[::1",
        "https://[127.0.0.1]",
        "https://" + "a" * 64 + ".example",
    ],
)
def test_anything_else_is_no_origin(text: str) -> None:
    with pytest.raises(Invalid):
        parse_origin(text)


PUBLIC = ["93.184.216.34", "1.1.1.1", "172.15.0.1", "172.32.0.1", "2606:2800:220:1::1", "2a00:1450::1"]

SPECIAL = [
    "10.1.2.3",
    "100.64.0.1",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "240.0.0.1",
    "::1",
    "::7f00:1",
    "::ffff:93.184.216.34",
    "::ffff:127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b:1::a00:1",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:7f00:1::1",
    "3fff::1",
    "4000::1",
    "fc00::1",
    "fd12:3456::1",
    "fe80::1",
    "fec0::1",
]

NEVER = ["0.0.0.0", "0.1.2.3", "224.0.0.1", "239.1.1.1", "255.255.255.255", "::", "ff02::1", "::ffff:0.0.0.0"]


@pytest.mark.parametrize("text", PUBLIC)
def test_global_unicast_is_accepted(text: str) -> None:
    assert EgressPolicy().accepts(ipaddress.ip_address(text))


@pytest.mark.parametrize("text", SPECIAL)
def test_special_addresses_need_the_setting(text: str) -> None:
    address = ipaddress.ip_address(text)
    assert not EgressPolicy().accepts(address)
    assert EgressPolicy(private_networks=PRIVATE_ALLOWED).accepts(address)


@pytest.mark.parametrize("text", NEVER)
def test_some_addresses_no_setting_opens(text: str) -> None:
    address = ipaddress.ip_address(text)
    assert not EgressPolicy().accepts(address)
    assert not EgressPolicy(private_networks=PRIVATE_ALLOWED).accepts(address)


def test_a_listed_network_opens_itself_alone() -> None:
    policy = EgressPolicy(
        private_networks=(ipaddress.ip_network("10.1.0.0/16"), ipaddress.ip_network("fd00::/64"))
    )
    assert policy.accepts(ipaddress.ip_address("10.1.255.1"))
    assert policy.accepts(ipaddress.ip_address("fd00::5"))
    assert not policy.accepts(ipaddress.ip_address("10.2.0.1"))
    assert not policy.accepts(ipaddress.ip_address("::ffff:10.1.0.1"))
    assert policy.accepts(ipaddress.ip_address("1.1.1.1"))


def test_a_scoped_address_is_refused() -> None:
    assert not EgressPolicy().accepts(ipaddress.ip_address("2606:2800::1%eth0"))


@pytest.mark.parametrize(
    "asked, refused",
    [
        ("https://api.example.com", False),
        ("https://api.example.com:443", False),
        ("https://API.example.com", False),
        ("https://api.example.com:8443", True),
        ("https://example.com", True),
        ("https://evil.api.example.com", True),
        ("http://api.example.com:443", True),
        ("http://plain.example.com", True),
    ],
)
def test_only_declared_origins_pass_and_https_unless_allowed(asked: str, refused: bool) -> None:
    policy = EgressPolicy(origins=frozenset({"https://api.example.com:443", "http://plain.example.com"}))
    assert bool(policy.refusal(parse_origin(asked))) is refused
    with_http = EgressPolicy(policy.origins, http_allowed=True)
    assert not with_http.refusal(parse_origin("http://plain.example.com"))


def test_a_send_is_held_to_the_origins_of_its_own_pack() -> None:
    policy = EgressPolicy(origins=frozenset({"https://a.example", "https://b.example"}))
    assert not policy.refusal(parse_origin("https://a.example"), ["https://a.example"])
    assert policy.refusal(parse_origin("https://b.example"), ["https://a.example"])
    assert policy.refusal(parse_origin("https://b.example"), [])
