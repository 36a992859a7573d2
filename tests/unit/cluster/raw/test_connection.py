"""The framing for large requests and answers, against a small server of the test's own."""

from __future__ import annotations

import asyncio
import ssl
import struct
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.cluster.raw.connection import DataConnection
from mirror_lib.features.demo.ports import LOOPBACK
from tests.support.security.pki import Certified

Answer = Callable[[int, bytes], bytes]


def echo(correlation_id: int, body: bytes) -> bytes:
    """An answer that carries the request's body."""
    return struct.pack(">ii", 4 + len(body), correlation_id) + body


async def _serve(answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            (size,) = struct.unpack(">i", await reader.readexactly(4))
            request = await reader.readexactly(size)
            _key, _version, correlation_id, length = struct.unpack_from(">hhih", request)
            reply = answer(correlation_id, request[10 + length :])
            # In pieces of any size, as networks deliver.
            for start in range(0, len(reply), 70_001):
                writer.write(reply[start : start + 70_001])
                await writer.drain()
                # The other end, which runs in the same loop, may take it before the next.
                await asyncio.sleep(0)
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


@asynccontextmanager
async def connected(
    answer: Answer,
    *,
    timeout: float = 10.0,
    told_as: Callable[[BaseException], BaseException] = lambda why: why,
    tls: tuple[ssl.SSLContext, ssl.SSLContext] | None = None,
    connect: Callable[..., DataConnection] = DataConnection,
) -> AsyncIterator[DataConnection]:
    """A connection to a server that answers so."""
    theirs, ours = tls or (None, None)
    server = await asyncio.start_server(lambda *streams: _serve(answer, *streams), LOOPBACK, 0, ssl=theirs)
    async with server:
        host, port = server.sockets[0].getsockname()
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_connection(asyncio.Protocol, host, port, ssl=ours)
        connection = connect(transport, client_id="tests", timeout=timeout, convert_error=told_as)
        try:
            yield connection
        finally:
            connection.close()


async def test_large_and_small_pieces_arrive_in_their_order() -> None:
    pieces = [b"a", bytes(range(256)) * 4_000, b"b", bytearray(b"c" * 20_000), b""]

    async with connected(echo) as connection:
        assert bytes(await connection.request(1, 11, pieces)) == b"".join(pieces)


class _DueOnce:
    """A session that has to be renewed at the third request, by a handshake and one message."""

    def __init__(self) -> None:
        self.asked = 0
        self.failure: Exception | None = None

    @property
    def is_due(self) -> bool:
        self.asked += 1
        return self.asked == 3

    async def renew(self, ask: Callable[..., Awaitable[memoryview]]) -> None:
        for number in range(2):
            assert bytes(await ask(17 + number, 1, (b"login %d" % number,))) == b"login %d" % number
        if self.failure is not None:
            raise self.failure


def with_session(session: _DueOnce) -> Callable[..., DataConnection]:
    return lambda transport, **named: DataConnection(transport, session=session, **named)


async def test_given_a_login_to_renew_then_requests_wait_for_it_in_their_order() -> None:
    arrived: list[bytes] = []

    def answer(correlation_id: int, body: bytes) -> bytes:
        arrived.append(body)
        return echo(correlation_id, body)

    async with connected(answer, connect=with_session(_DueOnce())) as connection:
        bodies = [b"request %d" % number for number in range(6)]
        answers = await asyncio.gather(*(connection.request(1, 11, [body]) for body in bodies))
        assert [bytes(each) for each in answers] == bodies
        assert not connection.is_renewing

    logins = [b"login 0", b"login 1"]
    # The first two were under way; the third found that the session is due.
    assert arrived == [b"request 0", b"request 1", *logins, *(b"request %d" % number for number in range(2, 6))]


async def test_given_a_login_that_cannot_be_renewed_then_the_connection_ends_and_nothing_more_is_sent() -> None:
    session, arrived = _DueOnce(), []
    session.failure = ValueError("refused")

    def answer(correlation_id: int, body: bytes) -> bytes:
        arrived.append(body)
        return echo(correlation_id, body)

    async with connected(answer, connect=with_session(session)) as connection:
        waiting = [connection.request(1, 11, [b"request %d" % number]) for number in range(4)]
        said = await asyncio.gather(*waiting, return_exceptions=True)
        assert [bytes(each) for each in said[:2] if isinstance(each, memoryview)] == [b"request 0", b"request 1"]
        for each in said[2:]:
            assert isinstance(each, ConnectionResetError)
            assert str(each) == "the login could not be renewed: refused"
        assert not connection.open

    assert arrived == [b"request 0", b"request 1", b"login 0", b"login 1"]


async def test_given_a_connection_that_is_closed_while_its_login_is_renewed_then_held_requests_fail() -> None:
    async with connected(echo, connect=with_session(_DueOnce())) as connection:
        waiting = [connection.request(1, 11, [b"%d" % number]) for number in range(4)]
        await asyncio.sleep(0)
        assert connection.is_renewing
        connection.close()
        said = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(each) for each in said] == [ConnectionResetError] * 4


async def test_requests_under_way_together_get_their_own_answers() -> None:
    async with connected(echo) as connection:
        bodies = [bytes([number]) * (number * 50_000) for number in range(8)]
        answers = await asyncio.gather(*(connection.request(1, 11, [body]) for body in bodies))
        assert [bytes(answer) for answer in answers] == bodies


async def test_what_somebody_still_looks_at_is_not_overwritten_by_later_answers() -> None:
    async with connected(echo) as connection:
        held = []
        for number in range(12):
            answer = await connection.request(1, 11, [bytes([number]) * 200_000])
            # Some keep a part of it, some all, most nothing.
            if number % 3 == 0:
                held.append((number, answer[1_000:2_000] if number % 2 else answer))
            del answer
        assert all(set(view) == {number} for number, view in held)


async def test_the_memory_of_a_large_answer_is_used_again_once_nobody_looks_at_it() -> None:
    async with connected(echo) as connection:
        used = set()
        for number in range(20):
            answer = await connection.request(1, 11, [bytes([number]) * (200_000 - number)])
            assert set(answer) == {number}
            assert len(answer) == 200_000 - number
            used.add(id(answer.obj))
        # The newest and the one before are held by this loop in turn.
        assert len(used) <= 3


async def test_a_small_answer_has_memory_of_its_own() -> None:
    async with connected(echo) as connection:
        answers = [await connection.request(1, 11, [b"x" * 10]) for _ in range(5)]
        assert len({id(answer.obj) for answer in answers}) == 5


async def test_an_answer_that_does_not_come_ends_the_connection() -> None:
    async with connected(lambda _id, _body: b"", timeout=0.2) as connection:
        waiting = [connection.request(1, 11, [b"x"]), connection.request(1, 11, [b"y"])]
        first, second = await asyncio.gather(*waiting, return_exceptions=True)
        # The request that was waited for too long is told apart from those behind it.
        assert isinstance(first, TimeoutError)
        assert isinstance(second, ConnectionError)
        assert not connection.open
        with pytest.raises(ConnectionError):
            await connection.request(1, 11, [b"z"])


async def test_a_garbled_stream_ends_the_connection(subtests: pytest.Subtests) -> None:
    for case, answer in (
        ("another request's answer", lambda number, body: echo(number + 1, body)),
        ("an impossible size", lambda _number, _body: struct.pack(">i", -5)),
        ("a size beyond any answer", lambda _number, _body: struct.pack(">i", 2**31 - 1)),
    ):
        with subtests.test(case=case):
            async with connected(answer) as connection:
                with pytest.raises(ConnectionError):
                    await connection.request(1, 11, [b"x"])
                assert not connection.open


#: A request, the bytes that a fetch wants, the size that is announced, and the largest allowed one.
ANNOUNCED = {
    "Produce": (0, b"x" * 100, 0, 2**30, 1024 * 1024 + 1600),
    "Fetch": (1, b"x" * 100, 50 * 1024 * 1024, 2**30, 154 * 1024 * 1024),
    "ListOffsets": (2, b"x" * 100, 0, 16 * 1024 * 1024, 1024 * 1024 + 1600),
    "Metadata": (3, b"x" * 100, 0, 64 * 1024 * 1024, 5 * 1024 * 1024 + 128 * 1024),
    "Metadata of many topics": (3, b"x" * 100_000, 0, 65 * 1024 * 1024, 64 * 1024 * 1024),
    "DescribeGroups": (15, b"x" * 100, 0, 65 * 1024 * 1024, 64 * 1024 * 1024),
    "ListGroups": (16, b"x" * 100, 0, 17 * 1024 * 1024, 16 * 1024 * 1024),
    "SaslHandshake": (17, b"x" * 100, 0, 2 * 1024 * 1024, 1024 * 1024),
    "ApiVersions": (18, b"", 0, 2**31 - 1, 1024 * 1024),
    "DescribeLogDirs": (35, b"", 0, 2**30 - 1, 16 * 1024 * 1024),
    "a future one": (99, b"x", 0, 2**24, 1024 * 1024 + 16),
}


@pytest.mark.parametrize("name", ANNOUNCED)
async def test_a_response_that_is_too_large_for_its_request_is_not_received(name: str) -> None:
    api_key, body, fetch_bytes, announced, allowed = ANNOUNCED[name]

    async with connected(lambda _number, _body: struct.pack(">i", announced) + bytes(4096)) as connection:
        with pytest.raises(ConnectionError, match=f"announced a response of {announced:,} bytes .* {allowed:,} are"):
            await connection.request(api_key, 1, [body], fetch_bytes=fetch_bytes)
        assert not connection.open


async def test_a_response_as_large_as_allowed_is_received() -> None:
    async with connected(lambda number, _body: echo(number, bytes(16 * 1024 * 1024 - 4))) as connection:
        assert len(await connection.request(35, 1, [b"x"])) == 16 * 1024 * 1024 - 4


async def test_a_response_that_nobody_waits_for_is_not_received() -> None:
    async with connected(lambda number, body: echo(number, body) + struct.pack(">i", 2**30) + bytes(10)) as connection:
        await connection.request(1, 11, [b"x"])
        with pytest.raises(ConnectionError):
            await connection.request(1, 11, [b"y"])


async def test_an_answer_that_cannot_be_read_fails_its_own_request_only() -> None:
    async with connected(echo) as connection:
        requests = [connection.request_read(1, 11, [body], int) for body in (b"1", b"no number", b"3")]
        first, second, third = await asyncio.gather(*requests, return_exceptions=True)
        assert (first, third) == (1, 3)
        assert isinstance(second, ValueError)
        assert connection.open


async def test_requests_fail_with_what_the_user_of_the_connection_makes_of_its_end() -> None:
    async with connected(
        lambda _id, _body: b"", timeout=0.2, told_as=lambda why: LookupError(type(why).__name__)
    ) as connection:
        waiting = [connection.request(1, 11, [b"x"]) for _ in range(2)]
        found = await asyncio.gather(*waiting, return_exceptions=True)
        assert [(type(each), str(each)) for each in found] == [
            (LookupError, "TimeoutError"),
            (LookupError, "ConnectionResetError"),
        ]


async def test_a_connection_that_is_closed_fails_what_waits() -> None:
    async with connected(lambda _id, _body: b"") as connection:
        waiting = asyncio.ensure_future(connection.request(1, 11, [b"x"]))
        await asyncio.sleep(0.01)
        connection.close()
        with pytest.raises(ConnectionError):
            await waiting


class Pieces(asyncio.Transport):
    """A transport that hands over in pieces what it is given, as a socket that is read into the protocol's buffer."""

    def deliver(self, connection: DataConnection, stream: bytes) -> None:
        while stream:
            room = connection.get_buffer(-1)
            taken = min(len(room), len(stream))
            room[:taken] = stream[:taken]
            connection.buffer_updated(taken)
            stream = stream[taken:]

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        pass

    def is_closing(self) -> bool:
        return False

    def writelines(self, list_of_data: object) -> None:
        pass

    def abort(self) -> None:
        pass


@given(
    sizes=st.lists(st.integers(0, 9_000), min_size=1, max_size=12), cuts=st.lists(st.integers(1, 30_000), max_size=40)
)
def test_answers_are_the_same_however_the_network_cuts_them(sizes: list[int], cuts: list[int]) -> None:
    async def run() -> list[bytes]:
        transport = Pieces()
        connection = DataConnection(transport, client_id="tests", timeout=10.0)
        waiting = [connection.request(1, 11, []) for _ in sizes]
        stream = b"".join(echo(number, bytes([number]) * size) for number, size in enumerate(sizes, start=1))
        for cut in (*cuts, len(stream)):
            transport.deliver(connection, stream[:cut])
            stream = stream[cut:]
        answers = [bytes(await answer) for answer in waiting]
        connection.close()
        return answers

    assert asyncio.run(run()) == [bytes([number]) * size for number, size in enumerate(sizes, start=1)]


class Counted(DataConnection):
    """Counts how often something is read."""

    reads = 0

    def buffer_updated(self, nbytes: int) -> None:
        self.reads += 1
        super().buffer_updated(nbytes)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it is not known when a socket tells of what it has")
async def test_a_large_answer_is_read_in_few_pieces_however_many_come() -> None:
    body = bytes(8_000_003)

    async with connected(echo, connect=Counted) as connection:
        assert isinstance(connection, Counted)
        assert await connection.request(1, 11, [body]) == body
        for small in (b"", b"x", bytes(5_000)):
            assert await connection.request(1, 11, [small]) == small
        # The server sends 115 pieces; half a mebibyte of them at a time are read, and small answers at once.
        assert connection.reads < 30


async def test_a_large_answer_over_tls_is_whole_when_all_of_it_has_left_the_socket() -> None:
    root = Certified.root("tests")
    server = root.issue(LOOPBACK, addresses=(LOOPBACK,)).server_context()

    async with connected(echo, tls=(server, ssl.create_default_context(cadata=root.pem)), timeout=5.0) as connection:
        for size in range(65_000, 1_200_000, 50_021):
            body = bytes(size)
            assert await connection.request(1, 11, [body]) == body
