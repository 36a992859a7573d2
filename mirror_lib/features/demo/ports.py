"""Ports for local servers that no other program is likely to take."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack

from mirror_lib.errors import MirrorError

LOOPBACK = "127.0.0.1"
# Below the range for outgoing connections (Linux: from 32768, IANA: from 49152). Any client may take a port of that
# range while the server is down, and a client that keeps connecting to one can even connect to itself.
_RANGE = range(20_000, 32_000)
_given_out: set[int] = set()


class NoFreePortError(MirrorError):
    """No free port was found."""

    reason = "no-free-port"


def is_free(port: int) -> bool:
    """Return True if a server could listen on the loopback port now."""
    with socket.socket() as probe:
        # Like a Java server: a port whose old connections are still in TIME_WAIT can be used.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def free_ports(count: int) -> list[int]:
    """Return different ports on which nothing listens, never the same twice from one process.

    Another process may still take one before it is used: then the caller tries again with others.

    Raises:
        NoFreePortError: none was found in many tries.
    """
    found: list[int] = []
    with ExitStack() as held:
        for _ in range(200 * count):
            port = random.choice(_RANGE)
            if port in _given_out:
                continue
            probe = held.enter_context(socket.socket())
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
            found.append(port)
            _given_out.add(port)
            if len(found) == count:
                return found
    raise NoFreePortError(f"{count} free ports between {_RANGE.start} and {_RANGE.stop} were not found.")
