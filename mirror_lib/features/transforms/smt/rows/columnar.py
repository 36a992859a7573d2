"""Chains that read no key and no value, over whole columns: routers, `Filter`, and headers from literals."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial

import numpy as np
import pyarrow as pa

from mirror_lib.features.transforms.smt import model
from mirror_lib.features.transforms.smt.chain import SmtChain
from mirror_lib.features.transforms.smt.converters.converters import encode
from mirror_lib.features.transforms.smt.model import ConverterKind, ConverterSettings, Stage
from mirror_lib.features.transforms.smt.routing import renamed_by_regex, renamed_by_time
from mirror_lib.features.transforms.smt.rows.arrays import Booleans, Int64s, column_of, nulls_of, numbers_of
from mirror_lib.features.transforms.smt.rows.headers import Headers
from mirror_lib.features.transforms.smt.rows.model import MadeRows, NeedsRecordsError
from mirror_lib.features.transforms.smt.rows.topics import Topics
from mirror_lib.features.transforms.smt.values.data import BYTES, OPTIONAL_BYTES, DataError
from mirror_lib.topology.java_regex import compile_java

_BY_COLUMNS = (model.RegexRouter, model.TimestampRouter, model.Filter, model.InsertHeader, model.DropHeaders)
_NO_TIMESTAMP_TYPE = -1
_MICROSECONDS = 1000


class ColumnarChain:
    """A chain for many batches; it keeps nothing of them."""

    def __init__(self, chain: SmtChain) -> None:
        """Args:
        chain: one that `runs_by_columns`.
        """
        settings = chain.settings
        self._changes_headers = chain.may_change_headers
        self._routes = chain.may_route
        converter = settings.header_converter
        self._encode = None if converter.kind is ConverterKind.BYTES else partial(_encoded_header, converter)
        self._steps = [(_condition(stage), _step(stage, converter)) for stage in settings.stages]

    def run(self, batch: pa.RecordBatch, target_topic: Callable[[str], str]) -> MadeRows:
        """Return the result of the chain for rows.

        Args:
            batch: has the columns of Spark's Kafka source.
            target_topic: returns the target's name of a source topic.

        Raises:
            NeedsRecordsError: only single records give the result.
        """
        rows = _Rows(batch, target_topic)
        try:
            for condition, step in self._steps:
                where = rows.live if condition is None else rows.live & condition(rows)
                if where.any():
                    step(rows, where)
            return self._made_rows(rows)
        except DataError as error:
            raise NeedsRecordsError from error

    def _made_rows(self, rows: _Rows) -> MadeRows:
        live = rows.live
        columns = {}
        if self._changes_headers:
            columns["headers"] = rows.headers.column(live, self._encode)
        if self._routes:
            columns["topic"] = rows.topics.changed_topics(live)
        return MadeRows(None if live.all() else column_of(np.flatnonzero(live)), columns)


def runs_by_columns(chain: SmtChain) -> bool:
    """Return True if a chain reads no key and no value, and leaves both unchanged."""
    sides = (chain.settings.key_converter, chain.settings.value_converter)
    keeps = chain.decodes or all(side.kind is ConverterKind.BYTES for side in sides)
    stages = chain.settings.stages
    return keeps and bool(stages) and all(isinstance(stage.transform, _BY_COLUMNS) for stage in stages)


class _Rows:
    """The rows of a batch during a chain; columns that are not read are not built."""

    def __init__(self, batch: pa.RecordBatch, target_topic: Callable[[str], str]) -> None:
        self._batch = batch
        self._target_topic = target_topic
        #: Rows that are not dropped.
        self.live: Booleans = np.ones(batch.num_rows, dtype=np.bool_)

    @cached_property
    def topics(self) -> Topics:
        return Topics(self._batch.column("topic"), self._target_topic)

    @cached_property
    def headers(self) -> Headers:
        return Headers(self._batch.column("headers"))

    @cached_property
    def without_value(self) -> Booleans:
        return nulls_of(self._batch.column("value"))

    @cached_property
    def without_time(self) -> Booleans:
        """Rows in a format without timestamps."""
        types = self._batch.column("timestampType")
        before: Booleans = (numbers_of(types) == _NO_TIMESTAMP_TYPE) & ~nulls_of(types)
        return before | nulls_of(self._batch.column("timestamp"))

    @cached_property
    def times(self) -> Int64s:
        """Epoch milliseconds."""
        times: Int64s = numbers_of(self._batch.column("timestamp")) // _MICROSECONDS
        return times


_Condition = Callable[[_Rows], Booleans]
#: Called with some of the rows, at least one.
_Action = Callable[[_Rows, Booleans], None]


def _condition(stage: Stage) -> _Condition | None:
    """Return the rows that a stage applies to; None for all."""
    if stage.predicate is None:
        return None
    holds = _holds(stage.predicate)
    return (lambda rows: ~holds(rows)) if stage.negate else holds


def _holds(predicate: model.Predicate) -> _Condition:
    match predicate:
        case model.TopicNameMatches(pattern):
            compiled = compile_java(pattern)
            return lambda rows: rows.topics.are(lambda name: compiled.fullmatch(name) is not None)
        case model.HasHeaderKey(name):
            return lambda rows: rows.headers.have(name)
        case model.RecordIsTombstone():
            return lambda rows: rows.without_value


def _step(stage: Stage, header_converter: ConverterSettings) -> _Action:
    match stage.transform:
        case model.RegexRouter() as by_regex:
            return lambda rows, where: rows.topics.rename(where, partial(renamed_by_regex, by_regex))
        case model.TimestampRouter() as by_time:
            return partial(_route_by_time, by_time)
        case model.InsertHeader(header, schema, value):
            content = partial(encode, header_converter, schema, value)
            return lambda rows, where: rows.headers.add(where, header, content)
        case model.DropHeaders(names):
            return lambda rows, where: rows.headers.drop(where, names)
        case model.Filter():
            return _drop
    raise AssertionError(f"{stage.transform.class_name} does not run by columns")


def _drop(rows: _Rows, where: Booleans) -> None:
    rows.live = rows.live & ~where


def _route_by_time(router: model.TimestampRouter, rows: _Rows, where: Booleans) -> None:
    if (rows.without_time & where).any():
        raise DataError("some records have no timestamp")
    # Moments that the format writes alike are written once.
    width = router.timestamp_format.resolution
    rows.topics.rename_by(where, rows.times // width * width, partial(renamed_by_time, router))


def _encoded_header(converter: ConverterSettings, content: bytes | None) -> bytes | None:
    return encode(converter, OPTIONAL_BYTES if content is None else BYTES, content)
