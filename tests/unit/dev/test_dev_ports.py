"""Ports for local servers."""

from __future__ import annotations

import socket

from mirror_lib.dev.ports import LOOPBACK, free_ports, is_free


def test_ports_are_different_also_over_several_calls_and_lie_below_those_of_outgoing_connections() -> None:
    given = [*free_ports(5), *free_ports(5)]

    assert len(set(given)) == 10
    assert all(port < 32_768 for port in given)


def test_a_port_is_not_free_while_somebody_listens() -> None:
    with socket.create_server((LOOPBACK, 0)) as server:
        port = server.getsockname()[1]
        assert not is_free(port)

    assert is_free(port)
