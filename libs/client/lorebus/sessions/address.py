"""Where a backend is. Pure; loopback and private networks are fine, a cloud's metadata service is not.

Whoever may set a base URL could otherwise have the host ask its cloud for credentials. A name can point anywhere, so
the peer of each connection is looked at too, before a byte is sent.
"""

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import SplitResult, quote, urlsplit

from lorebus.sessions.errors import ProviderSettingsInvalid

PORTS = {"http": 80, "https": 443}
METADATA_NAMES = {
    "metadata",
    "metadata.google.internal",
    "metadata.goog",
    "instance-data",
    "instance-data.ec2.internal",
}
METADATA_ADDRESSES = {ip_address(one) for one in ("100.100.100.200", "192.0.0.192", "fd00:ec2::254")}

_HOST_NAME = re.compile(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+")


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int
    is_secure: bool = False
    prefix: str = ""
    """What stands before every path, without a slash at its end."""

    @property
    def authority(self) -> str:
        """As the header Host has it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS["https" if self.is_secure else "http"] else f"{host}:{self.port}"


def parse_address(url: str) -> Address:
    """Raises ProviderSettingsInvalid for what is no http(s) address, or one that must not be called."""
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError as error:
        raise ProviderSettingsInvalid("baseUrl: not a URL") from error
    host = parts.hostname or ""
    if parts.scheme not in PORTS or not _HOST_NAME.fullmatch(host):
        raise ProviderSettingsInvalid("baseUrl: not an http or https URL with a host")
    if _has_extras(parts):
        raise ProviderSettingsInvalid("baseUrl: no user, query or fragment may stand in it; the key is a setting")
    if is_refused_host(host):
        raise ProviderSettingsInvalid("baseUrl: link-local and metadata addresses are refused")
    prefix = quote(parts.path.rstrip("/"), safe="/%")
    return Address(host, port or PORTS[parts.scheme], parts.scheme == "https", prefix)


def is_refused_host(host: str) -> bool:
    """Is it a name or an address that no backend has?"""
    if host.lower().rstrip(".") in METADATA_NAMES:
        return True
    try:
        return _is_refused_address(ip_address(host.partition("%")[0]))
    except ValueError:
        return False


def _is_refused_address(address: IPv4Address | IPv6Address) -> bool:
    inner = address.ipv4_mapped if isinstance(address, IPv6Address) and address.ipv4_mapped else address
    return inner.is_link_local or inner in METADATA_ADDRESSES


def _has_extras(parts: SplitResult) -> bool:
    return bool(parts.username or parts.password or parts.query or parts.fragment)
