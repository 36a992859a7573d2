"""`bootstrap.servers` as Java's clients read it (`ClientUtils` and `Utils.HOST_PORT_PATTERN`)."""

from __future__ import annotations

import re

from mirror_lib.masked_urls import masked_addresses
from mirror_lib.topology.java_types import parse_list

#: A listener name may come before the host; IPv6 addresses are allowed without brackets.
_ADDRESS = re.compile(r"(?:[0-9A-Za-z%._-]*://)?\[?([0-9A-Za-z%._:-]+)\]?:([0-9]{1,5})")
_HIGHEST_PORT = 65_535
#: Of web pages, and Kafka's security protocols, which are also listener names.
_SHOWN_SCHEMES = frozenset({"http", "https", "tcp", "ssl", "kafka", "plaintext", "sasl_plaintext", "sasl_ssl"})
#: Shown in place of a member with an `@`.
USER_INFORMATION = "user information (@)"
_MEANING = "a list of addresses such as host1:9092,host2:9092"


class AddressError(ValueError):
    """A text that is not a list of addresses; the message completes "must be"."""

    def __init__(self, member: str | None) -> None:
        self.member = member
        super().__init__(_MEANING if member is None else f"{_MEANING}; {member!r} is not valid")


def parse_addresses(text: str) -> tuple[str, ...]:
    """Return the brokers of a list as `host:port`, IPv6 addresses in brackets.

    Raises:
        AddressError: the list is empty, or a member is not an address. Java reads `:9092`, the result of a missing
            host, as this machine; here it is an error.
    """
    if "@" in text:
        # A password may contain commas, so no member is shown.
        raise AddressError(USER_INFORMATION)
    members = [member for member in parse_list(text) if member]
    if not members:
        raise AddressError(None)
    return tuple(map(_address, members))


def _address(member: str) -> str:
    found = _ADDRESS.fullmatch(member)
    if found is None or not 0 < int(found[2]) <= _HIGHEST_PORT:
        raise AddressError(masked_addresses(member))
    host = f"[{found[1]}]" if ":" in found[1] else found[1]
    return f"{host}:{found[2]}"


def shown_scheme(scheme: str) -> str:
    """Return a known scheme, and for others a placeholder: it may be a password (`secret://user@host:9092`)."""
    return scheme if scheme.lower() in _SHOWN_SCHEMES else "<scheme>"


def schemes_without_effect(text: str, protocol: str) -> tuple[str, ...]:
    """Return what is before `://` in addresses, and other than the protocol of the clients, which ignore it."""
    found = (member.partition("://") for member in parse_list(text))
    return tuple(dict.fromkeys(scheme for scheme, end, _ in found if end and scheme and scheme.upper() != protocol))
