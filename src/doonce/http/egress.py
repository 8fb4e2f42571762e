"""Egress policy: which origins may be reached, and through which addresses.

A name is resolved once per connection; the connection goes to exactly an address that was checked here,
so a second answer of the name server (rebinding) is never asked for. Of several addresses only the
acceptable ones are used. Refusing the whole name when one of them is not would protect no better, since
no connection ever goes to an unchecked address, and would cut off every name on a network whose name
server adds synthesised (DNS64) addresses.
"""

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from doonce.http.origins import Origin, parse_origin

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_NEVER: Final[tuple[Network, ...]] = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",  # unspecified, "this network": reaches the local host on Linux
        "224.0.0.0/4",  # multicast
        "255.255.255.255/32",  # broadcast
        "::/128",
        "ff00::/8",
    )
)

_SPECIAL_4: Final[tuple[ipaddress.IPv4Network, ...]] = tuple(
    ipaddress.IPv4Network(text)
    for text in (
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT; also metadata services of some clouds
        "127.0.0.0/8",
        "169.254.0.0/16",  # link-local; the usual metadata service
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",  # 6to4 relay
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "240.0.0.0/4",
    )
)

_GLOBAL_6: Final = ipaddress.IPv6Network("2000::/3")
"""All that is allocated for global unicast. Mapped (::ffff:0:0/96), NAT64 (64:ff9b::/96, 64:ff9b:1::/48),
unique-local, link-local, site-local, discard and loopback addresses all lie outside it."""

_SPECIAL_6: Final[tuple[ipaddress.IPv6Network, ...]] = tuple(
    ipaddress.IPv6Network(text)
    for text in (
        "2001::/23",  # protocol assignments, Teredo among them
        "2001:db8::/32",
        "2002::/16",  # 6to4: an IPv4 address in disguise
        "3fff::/20",
        "2620:4f:8000::/48",
    )
)

PRIVATE_ALLOWED: Final[tuple[Network, ...]] = (
    ipaddress.ip_network("0.0.0.0/0"),
    ipaddress.ip_network("::/0"),
)
"""Every address except unspecified, multicast and broadcast: for development and closed networks."""


@dataclass(frozen=True, slots=True)
class EgressPolicy:
    """What an operator allows. Refuses by default: plain http, and addresses that are not global unicast.

    `origins` are those that the published packs declare; a send may narrow them to its own pack's.
    `private_networks` lists networks that are reachable although not global.
    """

    origins: frozenset[str] = frozenset()
    http_allowed: bool = False
    private_networks: tuple[Network, ...] = ()

    def refusal(self, origin: Origin, declared: Iterable[str] | None = None) -> str:
        """Why this origin may not be reached, or "". Compares scheme, host and port exactly."""
        if origin.scheme != "https" and not self.http_allowed:
            return f"{origin} is not https, and the settings do not allow http"
        names = self.origins if declared is None else declared
        if str(origin) not in names and not any(parse_origin(name) == origin for name in names):
            return f"{origin} is not among the declared origins"
        return ""

    def accepts(self, address: Address) -> bool:
        """Whether a connection may go to this very address."""
        if any(address in network for network in _NEVER if network.version == address.version):
            return False
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
            # the kernel connects these over IPv4: both forms have to be acceptable
            return self._private(address) and self.accepts(address.ipv4_mapped)
        if self._private(address):
            return True
        if isinstance(address, ipaddress.IPv4Address):
            return not any(address in network for network in _SPECIAL_4)
        if address.scope_id is not None:
            return False
        return address in _GLOBAL_6 and not any(address in network for network in _SPECIAL_6)

    def _private(self, address: Address) -> bool:
        return any(
            address in network for network in self.private_networks if network.version == address.version
        )
