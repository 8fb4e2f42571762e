"""Origins: the unit of what may be reached, pooled and named in a certificate."""

import functools
import ipaddress
import re
from dataclasses import dataclass
from typing import Final

from doonce.base.errors import Invalid

DEFAULT_PORTS: Final = {"https": 443, "http": 80}

_ORIGIN: Final = re.compile(
    r"(?P<scheme>https?)://(?:\[(?P<six>[0-9A-Fa-f:.]{2,45})\]|(?P<host>[A-Za-z0-9._-]{1,253}))(?::(?P<port>[0-9]{1,5}))?"
)
_LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")


@dataclass(frozen=True, slots=True)
class Origin:
    """Scheme, host in lower case (an address without brackets) and port, always explicit."""

    scheme: str
    host: str
    port: int

    @property
    def address(self) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
        """The host as an address if it is written as one."""
        try:
            return ipaddress.ip_address(self.host)
        except ValueError:
            return None

    @property
    def authority(self) -> str:
        """The value of the Host header: the default port is left out."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}"


@functools.lru_cache(maxsize=4096)
def parse_origin(text: str) -> Origin:
    """`scheme://host[:port]` and nothing else; raises Invalid.

    No path, no user, no internationalised name (its ASCII form is what a certificate names), no number
    that resolvers read as an address in a form other than dotted decimal (`0x7f.1`, `2130706433`).
    """
    match = _ORIGIN.fullmatch(text)
    if match is None:
        raise Invalid("an origin is http(s)://host[:port] in ASCII, without a path or a user")
    port = int(match["port"]) if match["port"] else DEFAULT_PORTS[match["scheme"]]
    if not 0 < port < 65536:
        raise Invalid("the port of an origin is between 1 and 65535")
    if match["six"] is not None:
        try:
            host = str(ipaddress.IPv6Address(match["six"]))
        except ValueError:
            raise Invalid("the bracketed host of an origin is not an IPv6 address") from None
    else:
        host = _checked_name(match["host"].lower())
    return Origin(match["scheme"], host, port)


def _checked_name(host: str) -> str:
    labels = host.removesuffix(".").split(".")
    if not all(_LABEL.fullmatch(label) for label in labels):
        raise Invalid("the host of an origin is not a host name")
    if labels[-1].isdecimal() or labels[-1].startswith("0x"):
        try:
            ipaddress.IPv4Address(host)
        except ValueError:
            raise Invalid("the host of an origin ends in a number but is no dotted-decimal address") from None
    return host
