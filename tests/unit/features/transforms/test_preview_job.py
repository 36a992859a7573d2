"""The job of a preview without Spark: how records come to it, and how its answer comes back."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.errors import ConfigurationError, MirrorError, Where
from mirror_lib.features.transforms.model import TransformChain
from mirror_lib.features.transforms.preview.preview import MadeRecord, PreviewResult, RecordPlace
from mirror_lib.features.transforms.rows.layout import READ_SCHEMA
from mirror_lib.features.transforms.sampling.job import PreviewArguments, PreviewRunner, main, read_result, write_rows
from mirror_lib.features.transforms.sampling.sample import Edge, SampleStart, shares
from tests.support.flow_files import write_flow

RESULT = PreviewResult(
    made={RecordPlace(0, 1): (MadeRecord(b"k", None, (("h", None),), 5),)},
    failed={RecordPlace(0, 2): MirrorError("no", where=Where(topic="orders", partition=0, offset=2))},
    dropped_by={RecordPlace(0, 3): "live"},
)


@pytest.fixture
def arguments(tmp_path: Path) -> PreviewArguments:
    chain = ("A->B.mirror.transforms = live", "A->B.mirror.transform.live.filter = key IS NOT NULL")
    config = write_flow(tmp_path, *chain)
    return PreviewArguments(config, "A->B", "orders", "A.orders", tmp_path / "rows", tmp_path / "result")


def rows(count: int) -> pa.Table:
    return pa.Table.from_pylist([{"topic": "orders", "offset": offset} for offset in range(count)], READ_SCHEMA)


def run(arguments: PreviewArguments, runner: PreviewRunner) -> int:
    return main(arguments.command_line(), lambda _arguments, _flow: runner)


def test_a_command_line_is_read_as_it_was_written(arguments: PreviewArguments) -> None:
    assert PreviewArguments.parse(arguments.command_line()) == arguments


def test_the_job_gets_the_chain_of_the_topic_and_the_rows_and_its_answer_comes_back(
    arguments: PreviewArguments,
) -> None:
    asked: list[tuple[tuple[str, ...], int]] = []

    def runner(chain: TransformChain, given: pa.Table) -> PreviewResult:
        assert given.schema.equals(READ_SCHEMA)
        asked.append((chain.names, given.num_rows))
        return RESULT

    write_rows(arguments.rows, rows(3))

    assert run(arguments, runner) == 0
    assert asked == [(("live",), 3)]
    found = read_result(arguments.result)
    assert (found.made, found.dropped_by) == (RESULT.made, RESULT.dropped_by)
    assert [error.attributes() for error in found.failed.values()] == [
        {"reason": "error", "what": "no", "action": "", "topic": "orders", "partition": 0, "offset": 2}
    ]


def test_nobody_else_may_read_what_is_in_the_files(arguments: PreviewArguments) -> None:
    write_rows(arguments.rows, rows(1))
    run(arguments, lambda _chain, _rows: RESULT)

    assert [path.stat().st_mode & 0o077 for path in (arguments.rows, arguments.result)] == [0, 0]


def test_an_error_of_the_job_is_raised_where_its_answer_is_read(arguments: PreviewArguments) -> None:
    def refuses(_chain: TransformChain, _rows: pa.Table) -> PreviewResult:
        raise ConfigurationError("Spark refuses it.", action="Correct it.")

    write_rows(arguments.rows, rows(1))

    assert run(arguments, refuses) == 2
    with pytest.raises(ConfigurationError, match="Spark refuses it"):
        read_result(arguments.result)


def test_a_job_that_left_nothing_has_no_answer(arguments: PreviewArguments) -> None:
    assert read_result(arguments.result) is None


def test_a_place_in_a_topic_is_an_end_an_offset_or_a_time() -> None:
    for text, start in (
        ("earliest", SampleStart(edge=Edge.EARLIEST)),
        ("latest", SampleStart(edge=Edge.LATEST)),
        ("1704067200000", SampleStart(offset=1_704_067_200_000)),
        ("2024-01-01", SampleStart(timestamp=1_704_067_200_000)),
        ("2024-01-01T01:00:00+01:00", SampleStart(timestamp=1_704_067_200_000)),
    ):
        assert SampleStart.parse(text) == start, text


@given(st.lists(st.integers(0, 50), min_size=1, max_size=8), st.integers(1, 100))
def test_partitions_give_all_that_is_wanted_and_as_evenly_as_they_hold_it(held: list[int], most: int) -> None:
    found = shares(held, most)

    assert sum(found) == min(most, sum(held))
    assert all(share <= count for share, count in zip(found, held, strict=True))
    not_emptied = [share for share, count in zip(found, held, strict=True) if share < count]
    assert all(share <= min(not_emptied, default=share) + 1 for share in found)
