"""The Spark job of a preview: apply transforms to a few records, which come in a file. Nothing is written to Kafka.

A record for which a transform fails ends a whole Spark job. So the job is repeated without it, until all other records
are transformed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mirror_lib.errors import ConfigurationError, MirrorError, Where
from mirror_lib.features.transforms.arrow.records import outgoing_rows
from mirror_lib.features.transforms.arrow.rows import InexactRowError
from mirror_lib.features.transforms.model import Determinism, Transform, TransformChain
from mirror_lib.features.transforms.preview.preview import MadeRecord, PreviewResult, RecordPlace
from mirror_lib.features.transforms.record_mark import UntransformableRecordError, read_mark
from mirror_lib.features.transforms.rows.layout import SOURCE_COLUMN, number_of
from mirror_lib.features.transforms.sampling.job import PreviewArguments, PreviewRunner, main
from mirror_lib.features.transforms.sampling.sample import headers_of, places_of
from mirror_lib.features.transforms.smt import model as smt
from spark_jobs.entry import OpenSession, start
from spark_jobs.executor_wait import executors_within
from spark_jobs.failures import lost_its_jvm, spark_errors, spark_failure
from spark_jobs.spark_versions import from_arrow_table, to_arrow
from spark_jobs.transforms.frame import frame_of
from spark_jobs.transforms.record_failures import words_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from mirror_lib.config.model import FlowConfig

_MICROSECONDS = 1000
#: An error of this project that a worker raised without a record's mark, such as a function that cannot be imported.
_OURS = re.compile(r"mirror_lib\.[\w.]*?(?P<name>\w+): (?P<what>.+)")


def preview_with(
    spark: SparkSession, flow: str, remote_topics: Mapping[str, str], *, executor_wait_seconds: float
) -> PreviewRunner:
    """A runner that transforms rows in a session.

    It raises `ConfigurationError` if Spark refuses a transform, and `SparkJobError` if it fails regardless of the
    records.

    Args:
        flow: the flow for messages.
        remote_topics: target topics by source topic, which Connect's transforms see.
        executor_wait_seconds: maximum time until Spark gives the job its first executor; 0: no limit.
    """

    def run(chain: TransformChain, rows: pa.Table) -> PreviewResult:
        return _Preview(spark, flow, remote_topics, chain, rows, executor_wait_seconds).run()

    return run


@dataclass(slots=True)
class _Preview:
    _spark: SparkSession
    _flow: str
    _remote_topics: Mapping[str, str]
    _chain: TransformChain
    _rows: pa.Table
    _executor_wait_seconds: float
    _places: Sequence[RecordPlace] = field(init=False)
    _made: dict[RecordPlace, list[MadeRecord]] = field(default_factory=dict)
    _failed: dict[RecordPlace, MirrorError] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._places = places_of(self._rows)

    def run(self) -> PreviewResult:
        # Rows by their numbers.
        waiting = [list(range(len(self._places)))] if self._places else []
        while waiting:
            rows = waiting.pop()
            try:
                self._keep(self._transform(self._chain, rows))
            except spark_errors() as error:
                failure = _whatever_the_record(error, self._flow)
                if failure is not None:
                    raise failure from error
                waiting += self._without_failing(error, rows)
        made = {place: tuple(records) for place, records in self._made.items()}
        return PreviewResult(made, self._failed, self._dropped_by())

    def _transform(self, chain: TransformChain, rows: Sequence[int]) -> pa.Table:
        import pyarrow as pa

        chosen = self._rows.take(pa.array(rows, pa.int64()))
        wait = self._executor_wait_seconds
        with executors_within(self._spark, wait, self._flow, consequence="No record was transformed."):
            return to_arrow(frame_of(from_arrow_table(self._spark, chosen), chain, target_topic_of=self._remote_topics))

    def _without_failing(self, error: Exception, rows: list[int]) -> list[list[int]]:
        """The next groups to try; a record that has failed alone is recorded."""
        if len(rows) == 1:
            place = self._places[rows[0]]
            self._failed[place] = self._untransformable(words_of(error), place)
            return []
        marked = read_mark(str(error))
        named = None if marked is None else self._row_of(number_of(marked.place), marked.offset)
        if named in rows:
            # The text may quote the content of a record, so it may name another record than the failing one.
            return [[row for row in rows if row != named], [named]]
        middle = len(rows) // 2
        return [rows[:middle], rows[middle:]]

    def _row_of(self, partition: int, offset: int) -> int | None:
        place = RecordPlace(partition, offset)
        return self._places.index(place) if place in self._places else None

    def _keep(self, made: pa.Table) -> None:
        """Take transformed rows; a row that cannot become a record fails here as it would on writing."""
        places = places_of(made)
        for row, place in enumerate(places):
            try:
                _check_record(made.slice(row, 1))
            except InexactRowError as error:
                self._failed[place] = self._untransformable(error.what, place)
        for place, record in zip(places, _records(made), strict=True):
            if place not in self._failed:
                self._made.setdefault(place, []).append(record)

    def _untransformable(self, what: str, place: RecordPlace) -> MirrorError:
        topic = self._rows.column("topic")[0].as_py()
        return UntransformableRecordError(
            what,
            where=Where(flow=self._flow, topic=topic, partition=place.partition, offset=place.offset),
            action="Correct the transform, or skip such records with mirror.poison.policy.",
        )

    # ------------------------------------------------------------ records that are dropped

    def _dropped_by(self) -> dict[RecordPlace, str]:
        """The transforms that drop records, each found by the records that remain after it."""
        dropped = [row for row, place in enumerate(self._places) if place not in self._made | self._failed]
        droppers = _droppers(self._chain)
        found: dict[RecordPlace, str] = {}
        if self._chain.determinism is not Determinism.YES and len(droppers) > 1:
            # Another try might drop other records.
            return found
        for number in droppers[:-1]:
            if not dropped:
                return found
            left = self._left_behind(number + 1, dropped)
            if left is None:
                return found
            gone = [row for row in dropped if self._places[row] not in left]
            found |= {self._places[row]: self._chain.names[number] for row in gone}
            dropped = [row for row in dropped if self._places[row] in left]
        if droppers:
            found |= {self._places[row]: self._chain.names[droppers[-1]] for row in dropped}
        return found

    def _left_behind(self, members: int, rows: Sequence[int]) -> set[RecordPlace] | None:
        """The records that remain after the first members of the chain; None if that fails."""
        try:
            return set(places_of(self._transform(_first_of(self._chain, members), rows)))
        except spark_errors():
            return None
        except MirrorError:
            # The rows between two members may be invalid, although the whole chain writes valid ones.
            return None


def _whatever_the_record(error: Exception, flow: str) -> MirrorError | None:
    """The error if no record is the cause, None if one may be."""
    from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]

    failure = spark_failure(error, "the preview", flow)
    is_of_call = isinstance(error, Py4JError) and not isinstance(error, Py4JJavaError)
    if isinstance(failure, ConfigurationError) or lost_its_jvm(error) or is_of_call:
        return failure
    ours = _OURS.match(words_of(error))
    if ours is None:
        return None
    kind = ConfigurationError if ours["name"] == ConfigurationError.__name__ else MirrorError
    return kind(ours["what"], where=Where(flow=flow))


def _check_record(row: pa.Table) -> None:
    """Check that a row can become a record.

    Raises:
        InexactRowError: it cannot.
    """
    key, value, headers, timestamp, source = (
        row.column(name).combine_chunks() for name in ("key", "value", "headers", "timestamp", SOURCE_COLUMN)
    )
    outgoing_rows(key, value, headers, timestamp, source.field(1))


def _records(made: pa.Table) -> list[MadeRecord]:
    import pyarrow as pa

    times = made.column("timestamp").cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).to_pylist()
    names = ("key", "value", "headers", "topic", "partition")
    return [
        MadeRecord(key, value, headers_of(headers), None if time is None else time // _MICROSECONDS, topic, partition)
        for time, key, value, headers, topic, partition in zip(
            times, *(made.column(name).to_pylist() for name in names), strict=True
        )
    ]


def _droppers(chain: TransformChain) -> list[int]:
    """The indexes of a chain's members that may drop records."""
    stages = () if chain.smt is None else chain.smt.settings.stages
    may_drop = [
        *(isinstance(stage.transform, smt.Filter) for stage in stages),
        *(_may_drop(each) for each in chain.transforms),
    ]
    return [number for number, drops in enumerate(may_drop) if drops]


def _may_drop(transform: Transform) -> bool:
    return transform.filter is not None or transform.select is not None or transform.function is not None


def _first_of(chain: TransformChain, members: int) -> TransformChain:
    """A chain of the first members."""
    if chain.smt is None:
        return replace(chain, transforms=chain.transforms[:members])
    stages = chain.smt.settings.stages
    settings = replace(chain.smt.settings, stages=stages[:members])
    return replace(
        chain,
        smt=replace(chain.smt, settings=settings),
        transforms=chain.transforms[: max(members - len(stages), 0)],
    )


def _run(argv: Sequence[str], open_session: OpenSession) -> int:
    def make_runner(arguments: PreviewArguments, flow: FlowConfig) -> PreviewRunner:
        session = open_session(f"mirror transform preview {arguments.flow}")
        remote_topics = {arguments.topic: arguments.remote_topic}
        wait = flow.copy_settings.spark_executor_wait_seconds
        return preview_with(session, arguments.flow, remote_topics, executor_wait_seconds=wait)

    return main(argv, make_runner)


if __name__ == "__main__":
    sys.exit(start(sys.argv[1:], _run, copies=False))
