"""The fault proxy in front of servers that speak just enough of Kafka's protocol (protocol_common: size, ids)."""

from __future__ import annotations

import socket
import socketserver
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import accumulate, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.dev.broker import KafkaCluster
from mirror_lib.dev.broker_config import NodePorts, server_properties
from mirror_lib.dev.ports import LOOPBACK, free_ports
from mirror_lib.dev.processes import ProcessError
from testbed.kafka_frames import FrameSplitter, RequestHeader, answered_correlation_id, request_header
from testbed.proxy import KafkaProxy, Route

PRODUCE, METADATA = 0, 3
LONG = 20.0


def request(api_key: int, correlation_id: int, rest: bytes = b"") -> bytes:
    body = struct.pack(">hhi", api_key, 7, correlation_id) + rest
    return struct.pack(">i", len(body)) + body


def read_exactly(connection: socket.socket, count: int) -> bytes:
    read = b""
    while len(read) < count:
        data = connection.recv(count - len(read))
        if not data:
            raise EOFError
        read += data
    return read


class _Answering(socketserver.BaseRequestHandler):
    """Answers every request with its correlation id and what came behind; remembers the ids."""

    def handle(self) -> None:
        try:
            while True:
                size = struct.unpack(">i", read_exactly(self.request, 4))[0]
                message = read_exactly(self.request, size)
                self.server.seen.append(struct.unpack(">i", message[4:8])[0])  # type: ignore[attr-defined]
                self.request.sendall(struct.pack(">i", size - 4) + message[4:])
        except (EOFError, OSError):
            pass


class FakeBroker(socketserver.ThreadingTCPServer):
    """A server on a free port."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__((LOOPBACK, 0), _Answering)
        self.seen: list[int] = []

    @property
    def port(self) -> int:
        return int(self.server_address[1])


@contextmanager
def running(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Stage:
    """Two brokers behind a proxy, and connections to them."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.brokers = {1: FakeBroker(), 2: FakeBroker()}
        for broker in self.brokers.values():
            stack.enter_context(running(broker))
        self.ports = dict(zip(self.brokers, free_ports(2), strict=True))
        self.proxy = stack.enter_context(
            KafkaProxy({node: Route(self.ports[node], lambda node=node: self.brokers[node].port) for node in (1, 2)})  # type: ignore[misc]
        )

    def connect(self, node: int = 1) -> socket.socket:
        connection = socket.create_connection((LOOPBACK, self.ports[node]), timeout=LONG)
        return self._stack.enter_context(connection)


def ask(connection: socket.socket, correlation_id: int, api_key: int = METADATA, rest: bytes = b"hello") -> None:
    """A request and its answer."""
    connection.sendall(request(api_key, correlation_id, rest))
    answer = read_exactly(connection, 8 + len(rest))
    assert answer == struct.pack(">ii", 4 + len(rest), correlation_id) + rest


@pytest.fixture
def stage() -> Iterator[Stage]:
    with ExitStack() as stack:
        yield Stage(stack)


@given(st.lists(st.binary(max_size=40), max_size=8), st.lists(st.integers(1, 30), max_size=20), st.binary(max_size=3))
def test_messages_are_found_however_the_stream_is_cut(bodies: list[bytes], cuts: list[int], begun: bytes) -> None:
    frames = [struct.pack(">i", len(body)) + body for body in bodies]
    # The size of the next one, not yet whole; 0x16 would mean TLS where it stands first.
    stream = b"".join(frames) + begun.replace(b"\x16", b"\x00")
    ends = [0, *(end for end in accumulate(cuts) if end < len(stream)), len(stream)]
    splitter = FrameSplitter()

    found = [frame for first, end in pairwise(ends) for frame in splitter.feed(stream[first:end])]

    assert found == frames
    assert splitter.rest() == stream[sum(map(len, frames)) :]
    # Encrypted bytes pass as they come.
    encrypted = FrameSplitter()
    assert encrypted.feed(b"\x16\x03\x01") == [b"\x16\x03\x01"]
    assert encrypted.feed(b"\x00\x00") == [b"\x00\x00"]


def test_headers_are_those_of_kafkas_protocol() -> None:
    # An ApiVersions request, version 3, correlation id 1, client id "a", and an answer to it.
    asked = bytes.fromhex("0000000b 0012 0003 00000001 0001 61")

    assert request_header(asked) == RequestHeader(api_key=18, api_version=3, correlation_id=1)
    assert answered_correlation_id(bytes.fromhex("00000006 00000001 0000")) == 1
    assert request_header(asked[:11]) is None
    assert answered_correlation_id(b"\x00\x00\x00\x00") is None


def test_given_no_faults_then_requests_and_answers_pass_until_the_client_leaves(stage: Stage) -> None:
    first, second = stage.connect(1), stage.connect(2)

    for number in range(3):
        ask(first, number, rest=b"x" * 100_000)
        ask(second, number + 10)

    assert (stage.brokers[1].seen, stage.brokers[2].seen) == ([0, 1, 2], [10, 11, 12])
    assert (stage.proxy.connections(), stage.proxy.connections(1)) == (2, 1)
    first.close()
    while stage.proxy.connections(1):
        time.sleep(0.01)


def test_given_latency_then_a_round_trip_takes_at_least_that_long_and_requests_still_overlap(stage: Stage) -> None:
    connection = stage.connect()
    stage.proxy.latency(200)

    began = time.monotonic()
    connection.sendall(b"".join(request(METADATA, number) for number in range(500)))
    read_exactly(connection, 500 * 8)
    seconds = time.monotonic() - began

    # One after the other they would take 500 times as long.
    assert 0.2 <= seconds < 500 * 0.2


def test_given_a_cut_then_open_connections_are_reset_and_new_ones_work(stage: Stage) -> None:
    connection, other = stage.connect(1), stage.connect(2)
    ask(connection, 1)
    ask(other, 1)

    assert stage.proxy.cut(1) == 1

    with pytest.raises(ConnectionResetError):
        connection.recv(1)
    ask(other, 2)
    ask(stage.connect(1), 3)


def test_given_refusal_then_open_connections_stay_and_new_ones_are_refused_until_it_ends(stage: Stage) -> None:
    connection = stage.connect()
    ask(connection, 1)

    stage.proxy.refuse(1)

    with pytest.raises(ConnectionRefusedError):
        stage.connect(1)
    ask(connection, 2)
    ask(stage.connect(2), 3)
    stage.proxy.accept(1)
    ask(stage.connect(1), 4)


def test_given_a_stall_then_nothing_passes_until_it_ends_and_nothing_is_lost(stage: Stage) -> None:
    connection = stage.connect()
    ask(connection, 1)
    stage.proxy.stall()

    connection.sendall(request(METADATA, 2))
    newcomer = stage.connect()
    newcomer.sendall(request(METADATA, 3))
    connection.settimeout(0.2)
    with pytest.raises(TimeoutError):
        connection.recv(1)
    assert stage.brokers[1].seen == [1]

    stage.proxy.resume()
    connection.settimeout(LONG)
    assert read_exactly(connection, 8) == struct.pack(">ii", 4, 2)
    assert read_exactly(newcomer, 8) == struct.pack(">ii", 4, 3)


def test_given_an_answer_to_swallow_then_the_broker_has_the_request_and_the_first_client_a_broken_connection(
    stage: Stage,
) -> None:
    connection, other = stage.connect(), stage.connect(2)
    happened = stage.proxy.swallow_next_answer(PRODUCE)
    ask(connection, 1, METADATA)
    assert not happened.is_set()

    connection.sendall(request(PRODUCE, 2))

    with pytest.raises(ConnectionResetError):
        connection.recv(1)
    assert happened.is_set()
    assert stage.brokers[1].seen == [1, 2]
    ask(other, 2, PRODUCE)
    ask(stage.connect(1), 3, PRODUCE)


def test_given_a_request_without_an_answer_when_the_next_is_answered_then_the_right_one_is_swallowed(
    stage: Stage,
) -> None:
    """A Produce request with acks=0 has no answer: answers belong to requests by correlation id, not by their order."""
    silent = threading.Event()

    class Silent(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            read_exactly(self.request, len(request(PRODUCE, 1)) + len(request(METADATA, 2)))
            self.request.sendall(struct.pack(">ii", 4, 2))
            silent.wait()

    broker = socketserver.ThreadingTCPServer((LOOPBACK, 0), Silent)
    port = free_ports(1)[0]
    with running(broker), KafkaProxy({1: Route(port, lambda: int(broker.server_address[1]))}) as proxy:
        happened = proxy.swallow_next_answer(PRODUCE)
        with socket.create_connection((LOOPBACK, port), timeout=LONG) as connection:
            connection.sendall(request(PRODUCE, 1) + request(METADATA, 2))

            assert read_exactly(connection, 8) == struct.pack(">ii", 4, 2)
        silent.set()

    assert not happened.is_set()


def test_given_a_drop_rate_of_one_then_every_request_is_lost_with_its_connection(stage: Stage) -> None:
    stage.proxy.drop_rate(1.0, broker=1)
    connection = stage.connect(1)

    connection.sendall(request(METADATA, 1))

    with pytest.raises(ConnectionResetError):
        connection.recv(1)
    assert stage.brokers[1].seen == []
    ask(stage.connect(2), 2)


def test_given_all_faults_when_healed_then_everything_passes(stage: Stage) -> None:
    stage.proxy.stall()
    stage.proxy.refuse()
    stage.proxy.latency(60_000)
    stage.proxy.drop_rate(1.0)
    happened = stage.proxy.swallow_next_answer(METADATA)

    stage.proxy.heal()

    ask(stage.connect(), 1)
    assert not happened.is_set()


def test_given_a_broker_that_is_down_then_its_clients_are_reset() -> None:
    port, nobody = free_ports(2)
    with (
        KafkaProxy({1: Route(port, lambda: nobody)}),
        pytest.raises(ConnectionResetError),
        socket.create_connection((LOOPBACK, port), timeout=LONG) as connection,
    ):
        connection.recv(1)


def test_given_connections_when_stopped_then_they_are_reset_and_the_port_is_free(stage: Stage) -> None:
    connection = stage.connect()
    ask(connection, 1)

    stage.proxy.stop()

    with pytest.raises(ConnectionResetError):
        connection.recv(1)
    with pytest.raises(ConnectionRefusedError):
        stage.connect()


def test_a_proxied_listener_is_advertised_under_the_proxys_port_and_opened_under_its_own() -> None:
    node = NodePorts(1, 20001, {"PLAINTEXT": 20002, "PROXY": 20003}, {"PROXY": 20004})
    found = server_properties(node, [node], Path("/data"), listeners={"PLAINTEXT": "PLAINTEXT", "PROXY": "PLAINTEXT"})

    assert found["listeners"].startswith("PLAINTEXT://127.0.0.1:20002,PROXY://127.0.0.1:20003,")
    assert found["advertised.listeners"] == "PLAINTEXT://127.0.0.1:20002,PROXY://127.0.0.1:20004"
    assert found["inter.broker.listener.name"] == "PLAINTEXT"


def test_clients_of_a_proxied_listener_connect_to_the_advertised_ports(tmp_path: Path) -> None:
    listeners = {"PLAINTEXT": "PLAINTEXT", "PROXY": "PLAINTEXT"}
    cluster = KafkaCluster("new", directory=tmp_path, brokers=3, listeners=listeners, proxied=["PROXY"])

    nodes = [cluster.ports_of(node) for node in (1, 2, 3)]
    wanted = ",".join(f"127.0.0.1:{node.advertised['PROXY']}" for node in nodes)
    assert cluster.bootstrap_servers_of("PROXY") == wanted
    assert len({port for node in nodes for port in (*node.listeners.values(), *node.advertised.values())}) == 9
    assert not any("PLAINTEXT" in node.advertised for node in nodes)


def test_the_brokers_own_listener_and_unknown_ones_cannot_be_proxied(tmp_path: Path) -> None:
    for proxied in ("PLAINTEXT", "OTHER"):
        with pytest.raises(ValueError, match=proxied):
            KafkaCluster("new", directory=tmp_path, proxied=[proxied])


def test_given_a_folder_without_proxied_ports_when_they_are_wanted_then_it_is_refused(tmp_path: Path) -> None:
    node = '{"node_id": 1, "controller": 20001, "listeners": {"PLAINTEXT": 20002, "PROXY": 20003}}'
    (tmp_path / "cluster.json").write_text(f'{{"cluster_id": "abc", "nodes": [{node}]}}')
    listeners = {"PLAINTEXT": "PLAINTEXT", "PROXY": "PLAINTEXT"}

    assert KafkaCluster("same", directory=tmp_path, listeners=listeners).bootstrap_servers == "127.0.0.1:20002"
    with pytest.raises(ProcessError, match="another shape"):
        KafkaCluster("other", directory=tmp_path, listeners=listeners, proxied=["PROXY"])
