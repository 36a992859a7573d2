"""Where batches lie, and how large requests are: less would be measured than is counted."""

from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.cluster.batches.ready import ReadyBatch
from tools.bench.limit.halves import Layout, requests
from tools.bench.workloads.workload import WORKLOADS, BatchMill

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


def _ready(count: int, size: int = 100) -> ReadyBatch:
    return ReadyBatch(bytearray(size), count, ((0, count),), count, 0, 0)


def test_large_batches_are_spread_over_several_requests() -> None:
    megabyte = 1024 * 1024

    made = list(requests("t", {partition: [_ready(1, megabyte)] for partition in range(6)}))

    assert [len(request.expected) for request in made] == [4, 2]
