"""What the limit's processes know beforehand: where batches lie, who reads what, and which requests to send."""

import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.clusters.wire import Wire, frame
from bench.errors import BenchError
from bench.limit.halves import Layout, requests, split
from bench.workloads.workload import WORKLOADS, BatchMill
from mirror_lib.cluster.batches.ready import ReadyBatch

_WORKLOAD = WORKLOADS[4].scaled(23)


def _log() -> list[bytes]:
    """The batches of a partition at their offsets: four of five records, and one of three."""
    batches, offset = [], 0
    for batch in BatchMill(_WORKLOAD).batches(0, 1, 1_700_000_000_000):
        batch[:8] = offset.to_bytes(8, "big")
        offset += 5
        batches.append(bytes(batch))
    return batches


def _layout(batches: list[bytes]) -> Layout:
    layout = Layout()
    layout.add(b"".join(batches))
    return layout


def test_a_layout_has_every_batch_and_goes_on_where_the_last_answer_was_cut() -> None:
    batches = _log()
    log, layout = b"".join(batches), Layout()

    first = layout.add(log[: len(batches[0]) + len(batches[1]) + 70])
    second = layout.add(log[first:])

    assert first == len(batches[0]) + len(batches[1])
    assert first + second == len(log)
    assert layout.batches == 5
    assert list(layout.offsets) == [0, 5, 10, 15, 20, 23]
    assert layout.positions[-1] == len(log)
    assert layout == _layout(batches)


@given(st.integers(0, 4), st.integers(0, 2_000))
def test_the_next_batch_to_ask_for_follows_from_the_bytes_alone(batch: int, received: int) -> None:
    batches = _log()

    after = _layout(batches).after(batch, min(received, sum(map(len, batches[batch:]))))

    whole = batch
    while whole < len(batches) and sum(map(len, batches[batch : whole + 1])) <= received:
        whole += 1
    assert after == whole


def test_partitions_are_dealt_out_evenly() -> None:
    for parts, sizes in ((1, [8]), (2, [4, 4]), (3, [3, 3, 2]), (9, [1] * 8)):
        shares = split(range(8), parts)

        assert [len(share) for share in shares] == sizes
        assert sorted(each for share in shares for each in share) == list(range(8))


def _ready(count: int, size: int = 100) -> ReadyBatch:
    return ReadyBatch(bytearray(size), count, ((0, count),), count, 0, 0)


@given(st.dictionaries(st.integers(0, 9), st.lists(st.integers(1, 9), max_size=6), max_size=6))
def test_every_batch_is_sent_once_and_in_order(counts: dict[int, list[int]]) -> None:
    made = list(requests("t", {each: [_ready(count) for count in found] for each, found in counts.items()}))

    sent: Counter[int] = Counter(partition for request in made for partition in request.expected)
    assert sent == Counter({partition: len(found) for partition, found in counts.items() if found})
    for partition, found in counts.items():
        offsets = [request.expected[partition] for request in made if partition in request.expected]
        assert offsets == [sum(found[:number]) for number in range(len(found))]


def test_large_batches_are_spread_over_several_requests() -> None:
    megabyte = 1024 * 1024

    made = list(requests("t", {partition: [_ready(1, megabyte)] for partition in range(6)}))

    assert [len(request.expected) for request in made] == [4, 2]


def test_a_frame_says_its_size_and_leaves_large_pieces_where_they_are() -> None:
    large = bytearray(b"x" * 20_000)

    pieces = frame(0, 7, [b"ab", large, b"c"])

    whole = b"".join(pieces)
    # The size, API key 0, version 7, a correlation id, no client id (request header v1), the body.
    assert whole == (len(whole) - 4).to_bytes(4, "big") + b"\0\0\0\7" + bytes(4) + b"\xff\xff" + b"ab" + large + b"c"
    assert any(piece.obj is large for piece in pieces)


@contextmanager
def _broker(answers: bytes, heard: list[bytes], size: int) -> Iterator[str]:
    """Reads `size` bytes, then answers and hangs up."""

    def serve(listener: socket.socket) -> None:
        client, _ = listener.accept()
        with client:
            received = bytearray()
            while len(received) < size:
                received += client.recv(1 << 20)
            heard.append(bytes(received))
            client.sendall(answers)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = Thread(target=serve, args=(listener,))
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            thread.join()


def test_requests_of_many_megabytes_and_pieces_arrive_whole_and_answers_come_in_order() -> None:
    body = [bytes([number % 251]) * 20_000 for number in range(1_500)]
    request, heard = frame(1, 11, body), list[bytes]()
    answers = b"".join((len(each) + 4).to_bytes(4, "big") + bytes(4) + each for each in (b"one", b"y" * 300_000))

    with _broker(answers, heard, sum(map(len, request))) as address, Wire(address, answer_bytes=16) as wire:
        wire.send(request)
        first, second = bytes(wire.receive()), bytes(wire.receive())

        assert (first, second) == (b"one", b"y" * 300_000)
        assert heard == [b"".join(request)]
        with pytest.raises(BenchError, match="closed the connection"):
            wire.receive()
