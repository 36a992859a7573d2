"""A broker, or an impostor, that misuses the first messages of a connection."""

from __future__ import annotations

import asyncio
import base64
import struct
from collections.abc import Callable

import pytest

from mirror_lib.cluster.admin.client import ClusterAdmin
from mirror_lib.cluster.auth.sasl import PasswordLogin
from mirror_lib.cluster.auth.security import Security
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.raw.client import open_clients
from mirror_lib.cluster.raw.handshake import SILENCE, shake_hands
from mirror_lib.errors import AuthenticationError, MirrorError
from mirror_lib.features.demo.ports import LOOPBACK

_API_VERSIONS, _HANDSHAKE, _AUTHENTICATE = 18, 17, 36
_SUPPORTED = ((3, 0, 5), (_HANDSHAKE, 0, 1), (_API_VERSIONS, 0, 0), (_AUTHENTICATE, 0, 0))
_MECHANISM = "SCRAM-SHA-256"
#: The server's first message, for the nonce of the client.
First = Callable[[str], bytes]


def first(iterations: str) -> First:
    salt = base64.b64encode(b"salt").decode()
    return lambda nonce: f"r={nonce}more,s={salt},i={iterations}".encode()


class Impostor:
    """Knows no password, and notes what it is sent."""

    def __init__(self, server_first: First, announced: dict[int, int]) -> None:
        self._first = server_first
        self._announced = announced
        self.messages: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                request = await reader.readexactly(size)
                key, _version, number, length = struct.unpack_from(">hhih", request)
                body = struct.pack(">i", number) + self._answer(key, request[10 + length :])
                writer.write(struct.pack(">i", self._announced.get(key, len(body))) + body)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def _answer(self, key: int, body: bytes) -> bytes:
        if key == _API_VERSIONS:
            return struct.pack(">hi", 0, len(_SUPPORTED)) + b"".join(struct.pack(">hhh", *each) for each in _SUPPORTED)
        if key == _HANDSHAKE:
            return struct.pack(">hih", 0, 1, len(_MECHANISM)) + _MECHANISM.encode()
        self.messages.append(body[4:])
        nonce = body.partition(b"r=")[2].decode()
        sent = self._first(nonce) if len(self.messages) == 1 else b"v=" + base64.b64encode(b"no signature")
        return struct.pack(">hhi", 0, -1, len(sent)) + sent


def met(impostor: Impostor, scene: Callable[[Connection], object]) -> None:
    """Run a scene in another thread, with a connection to the impostor."""

    async def run() -> None:
        async with await asyncio.start_server(impostor.serve, LOOPBACK, 0) as server:
            host, port = server.sockets[0].getsockname()
            login = Security("SASL_PLAINTEXT", sasl=PasswordLogin(_MECHANISM, "me", "secret"))
            connection = Connection("A", (f"{host}:{port}",), request_timeout_ms=3_000, security=login)
            await asyncio.to_thread(scene, connection)

    asyncio.run(run())


def hands(connection: Connection) -> None:
    host, port = connection.bootstrap_servers[0].split(":")
    asyncio.run(shake_hands(connection, host, int(port)))


def raw_client(connection: Connection) -> None:
    async def opened() -> None:
        async with open_clients(connection):
            pass

    asyncio.run(opened())


def native_client(connection: Connection) -> None:
    with ClusterAdmin(connection, 3.0) as admin:
        admin.list_topics()


WAYS: list[Callable[[Connection], None]] = [hands, raw_client, native_client]
BAD = ["1", "0", "-1", "4095", "1000001", "2000000000", "9" * 30, "8192,i=1", "1" * 5_000]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("iterations", BAD)
def test_a_number_of_iterations_outside_the_limits_gets_no_proof(
    iterations: str, way: Callable[[Connection], None]
) -> None:
    impostor = Impostor(first(iterations), {})

    def scene(connection: Connection) -> None:
        with pytest.raises(AuthenticationError, match=r"iterations of SCRAM|not SCRAM") as caught:
            way(connection)
        assert caught.value.where.cluster == "A"

    met(impostor, scene)
    assert impostor.messages
    assert not any(b"p=" in message for message in impostor.messages)


GARBLED: list[First] = [
    first("many"),
    lambda _: b"",
    lambda _: b"e=no",
    lambda _: b"\xff\xfe",
    lambda nonce: f"r={nonce},i=4096".encode(),
    lambda _: b"r=another,s=c2FsdA==,i=4096",
    lambda nonce: f"r={nonce},s=~,i=4096".encode(),
]


@pytest.mark.parametrize("server_first", [*GARBLED, first("4096")])
def test_a_message_that_is_not_scram_is_a_refused_login(server_first: First) -> None:
    def scene(connection: Connection) -> None:
        with pytest.raises(AuthenticationError, match="not SCRAM"):
            hands(connection)

    met(Impostor(server_first, {}), scene)


@pytest.mark.parametrize("way", [hands, raw_client])
@pytest.mark.parametrize("key", [_API_VERSIONS, _HANDSHAKE, _AUTHENTICATE])
@pytest.mark.parametrize("size", [2**31 - 1, 2 * 1024 * 1024, -5])
def test_an_announced_size_beyond_a_login_ends_the_connection(
    key: int, size: int, way: Callable[[Connection], None]
) -> None:
    def scene(connection: Connection) -> None:
        with pytest.raises((*SILENCE, MirrorError), match="announced a response of"):
            way(connection)

    met(Impostor(first("4096"), {key: size}), scene)
