"""Transforms in Spark's Python workers. They import this module, so it imports nothing that only the driver
needs.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np
import pyarrow as pa

from mirror_lib.errors import ConfigurationError, Where
from mirror_lib.features.transforms.model import TARGET_COLUMNS
from mirror_lib.features.transforms.record_mark import refuse_record
from mirror_lib.features.transforms.smt.chain import SmtChain
from mirror_lib.features.transforms.smt.rows.model import RefusedRowError
from mirror_lib.features.transforms.smt.rows.stage import SmtRows
from spark_jobs.sealing import unseal
from spark_jobs.transforms.hidden_columns import BYTES, FROM, NEW, OLD, SOURCE, TOPIC

if TYPE_CHECKING:
    from mirror_lib.features.transforms.smt.rows.model import MadeRows

#: The remote topic of a source topic.
TargetTopicOf = Mapping[str, str] | Callable[[str], str]


def apply_smts(
    stamp: str, sealed: bytes, target_topics: TargetTopicOf, batches: Iterable[Any]
) -> Iterator[pa.RecordBatch]:
    """Apply Connect's transforms to rows in the form that `transform_state` has between two transforms.

    Args:
        stamp: result of `spark_jobs.sealing.seal`.
        sealed: the `SmtChain`.
        target_topics: the remote topic of each source topic.

    Raises:
        UntransformableRecordError: an SMT fails for a record; the error has the record's mark.
        ConfigurationError: the driver has another version of this package.
    """
    stage = SmtStage(unseal(stamp, sealed), target_topics)
    for batch in batches:
        if batch.num_rows:
            yield stage.run(batch)


class SmtStage:
    """One chain for all batches of a task."""

    def __init__(self, chain: SmtChain, target_topics: TargetTopicOf) -> None:
        # numpy and Arrow are imported only where rows are processed.
        self._rows = SmtRows(chain, target_topics if callable(target_topics) else target_topics.__getitem__)

    def run(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The remaining rows of a batch, as changed by the chain."""
        made = self._run(batch)
        if made.kept is not None:
            batch = batch.take(made.kept)
        new = {TOPIC if name == "topic" else name: column for name, column in made.columns.items()}
        columns = [new.get(name, batch.column(number)) for number, name in enumerate(batch.schema.names)]
        return pa.RecordBatch.from_arrays(columns, schema=batch.schema)

    def _run(self, batch: pa.RecordBatch) -> MadeRows:
        try:
            return self._rows.run(batch)
        except RefusedRowError as refused:
            refuse_row(refused.error, batch, refused.row)


def apply_arrow_function(
    module: str,
    name: str,
    given: tuple[str, ...],
    carried: tuple[str, ...],
    documents: tuple[str, ...],
    batches: Iterable[Any],
) -> Iterator[pa.RecordBatch]:
    """Apply a user's function to record batches.

    The output is `carried`, then a column for each one that the function may set, with the prefix `__mirror_new_`, and
    for those of `documents`, which may be returned as bytes, another one with the prefix `__mirror_bytes_`.

    Args:
        module: module of the function.
        name: name of the function.
        given: the columns that it gets.
        carried: the columns that stay with each row.
        documents: those of key and value that are decoded into more than text.

    Raises:
        UntransformableRecordError: the function fails for a record; the error has the record's mark.
        ConfigurationError: it cannot be imported here, or returns an invalid result.
    """
    stage = _ArrowFunction(import_function(module, name), f"{module}:{name}", given, carried, documents)
    for batch in batches:
        if batch.num_rows:
            yield stage.run(batch)


def import_function(module: str, name: str) -> Callable[[Any], Any]:
    """Import a user's function.

    Raises:
        ConfigurationError: there is none.
    """
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(
            f"the function {module}, {name} cannot be imported: {error}.",
            action="Install its package where the flow is planned and into the Python of Spark's workers.",
        ) from error
    if not callable(found):
        raise ConfigurationError(f"{module}, {name} is not a function.", action="Use a function.")
    return cast("Callable[[Any], Any]", found)


class _ArrowFunction:
    """A user's function, with the conversion of its argument and result."""

    def __init__(
        self,
        function: Callable[[Any], Any],
        name: str,
        given: tuple[str, ...],
        carried: tuple[str, ...],
        documents: tuple[str, ...],
    ) -> None:
        self._function = function
        self._name = name
        self._given = given
        self._carried = carried
        self._documents = documents

    def run(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The function's result for the rows of a batch."""
        given = batch.select(list(self._given))
        try:
            result = self._function(given)
        except Exception as error:
            self._find(given, batch)
            raise self._wrong(
                f"failed with {type(error).__name__}: {error}", "Each of the records alone is accepted."
            ) from error
        if not isinstance(result, pa.RecordBatch):
            raise self._wrong(f"returns {type(result).__name__}", "It must return a pyarrow.RecordBatch.")
        if SOURCE not in result.schema.names:
            raise self._wrong(
                f"does not return the column {SOURCE}", "Keep that column: it identifies the record of a row."
            )
        kept = batch.take(self._rows(batch, result)).select(list(self._carried))
        columns = {name: kept.column(name) for name in self._carried}
        for name in TARGET_COLUMNS:
            columns[f"{NEW}{name}"] = self._column(name, batch, kept, result)
        for name in self._documents:
            columns[f"{BYTES}{name}"] = self._content(name, batch, result)
        return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))

    def _find(self, given: pa.RecordBatch, batch: pa.RecordBatch) -> None:
        """Raise the error of the first record for which the function fails alone, with its mark."""
        for row in range(given.num_rows):
            try:
                self._function(given.slice(row, 1))
            except Exception as error:
                refuse_row(error, batch, row)

    def _rows(self, batch: pa.RecordBatch, result: pa.RecordBatch) -> pa.Array:
        """For each row of the result, the input row from which it was made."""
        known = {source: row for row, source in enumerate(_sources(batch))}
        try:
            rows = np.array([known[source] for source in _sources(result)], dtype=np.int64)
        except KeyError:
            raise self._wrong(f"changes {SOURCE}", "Return that column unchanged.") from None
        if (np.diff(rows) < 0).any():
            raise self._wrong("returns rows in another order", "Keep the order of the rows.")
        return pa.Array.from_buffers(pa.int64(), len(rows), [None, pa.py_buffer(rows)])

    def _column(self, name: str, batch: pa.RecordBatch, kept: pa.RecordBatch, result: pa.RecordBatch) -> pa.Array:
        """One of the columns that the function may set, in the type of its argument, or as bytes."""
        given = batch.schema.field(name).type
        if name not in result.schema.names:
            if name in ("topic", "partition"):
                return kept.column(f"{OLD}{name}")
            raise self._wrong(f"does not return the column {name}", "Return all columns of the input.")
        found = result.column(name)
        if name in self._documents:
            return found if found.type == given else pa.nulls(len(found), given)
        wanted = pa.binary() if name in ("key", "value") else given
        try:
            return found if found.type == wanted else found.cast(wanted)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise self._wrong(f"returns {name} of the type {found.type}: {error}", f"Return {wanted}.") from error

    def _content(self, name: str, batch: pa.RecordBatch, result: pa.RecordBatch) -> pa.Array:
        """The bytes that were returned instead of a document; nulls if it is one."""
        given, found = batch.schema.field(name).type, result.column(name)
        kind = pa.struct([pa.field("content", pa.binary())])
        if found.type == given:
            return pa.nulls(len(found), kind)
        types = pa.types
        if not any(is_it(found.type) for is_it in (types.is_string, types.is_binary, types.is_large_string)):
            raise self._wrong(
                f"returns {name} of the type {found.type}", f"Return bytes or text, or the unchanged {given}."
            )
        return pa.Array.from_buffers(kind, len(found), [None], children=[found.cast(pa.binary())])

    def _wrong(self, what: str, action: str) -> ConfigurationError:
        return ConfigurationError(f"the function {self._name} {what}.", action=action)


def _sources(batch: pa.RecordBatch) -> list[tuple[int, int]]:
    column = batch.column(SOURCE)
    return list(zip(column.field(0).to_pylist(), column.field(1).to_pylist(), strict=True))


def refuse_row(error: Exception, batch: pa.RecordBatch, row: int) -> NoReturn:
    """Raise an error with the coordinates of its record."""
    source = batch.column(SOURCE).field(0)[row].as_py(), batch.column(SOURCE).field(1)[row].as_py()
    names = batch.schema.names
    # Rows as they were read only have the topic in its original column.
    topic, partition = (
        batch.column(name)[row].as_py() if name in names else None
        for name in (FROM if FROM in names else "topic", "partition")
    )
    refuse_record(error, *source, where=Where(topic=topic, partition=partition, offset=source[1]))
