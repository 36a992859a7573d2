"""Tasks in Spark's Python workers for keys and values with schema ids. Workers import this module."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import pyarrow as pa

from mirror_lib.features.transforms.arrow_values import array_of
from mirror_lib.features.transforms.schema_use.registry_sides import (
    SchemaRenumbering,
    SideCodec,
    SideReader,
    SideRenumbering,
)
from mirror_lib.features.transforms.schemas.errors import SchemaFormatError, SchemaMissingError
from spark_jobs.sealing import unseal
from spark_jobs.transforms.hidden_columns import DECODED, FROM
from spark_jobs.transforms.tasks import refuse_row


def decode_sides(stamp: str, sealed: bytes, batches: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    """Decode keys and values to columns with the types of `registry_sides.column_of`.

    Args:
        stamp: result of `spark_jobs.sealing.seal`.
        sealed: pairs of the name of a new column, `__mirror_decoded_` followed by the side, and a
            `SideReader`.

    Raises:
        UntransformableRecordError: a record cannot be decoded; the error has the record's mark.
        SchemaRegistryError: the registry does not respond; no record is the cause.
        ConfigurationError: the driver has another version of this package.
    """
    readers: list[tuple[str, SideReader]] = unseal(stamp, sealed)
    stages = [(column, _codecs(reader)) for column, reader in readers]
    for batch in batches:
        changed = batch
        for column, codecs in stages:
            kind = next(iter(codecs.values())).column.kind
            side = column.removeprefix(DECODED)
            changed = _with_column(changed, side, column, kind, partial(_decode, codecs))
        yield changed


def encode_sides(stamp: str, sealed: bytes, batches: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    """Replace the results of transforms in such columns by their bytes; else as `decode_sides`."""
    readers: list[tuple[str, SideReader]] = unseal(stamp, sealed)
    stages = [(column, _codecs(reader)) for column, reader in readers]
    for batch in batches:
        changed = batch
        for column, codecs in stages:
            changed = _with_column(changed, column, column, pa.binary(), partial(_encode, codecs))
        yield changed


def renumber_sides(stamp: str, sealed: bytes, batches: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    """Replace the schema ids in keys and values by those of the target.

    Args:
        stamp: as for `decode_sides`.
        sealed: pairs with a `SideRenumbering`.

    Raises:
        UntransformableRecordError: a record's schema is missing; the error has the record's mark.
        ConfigurationError: the driver has another version of this package.
    """
    sides: list[SideRenumbering] = unseal(stamp, sealed)
    stages = [(each.side, SchemaRenumbering(each)) for each in sides]
    for batch in batches:
        changed = batch
        for column, renumbering in stages:
            changed = _with_column(changed, column, column, pa.binary(), renumbering.renumber)
        yield changed


def _decode(codecs: Mapping[str, SideCodec], topic: str, value: bytes | None) -> Any:
    return codecs[topic].decode(value)


def _encode(codecs: Mapping[str, SideCodec], topic: str, value: Any) -> bytes | None:
    return codecs[topic].encode(value)


def _codecs(reader: SideReader) -> dict[str, SideCodec]:
    """Codecs by topic; topics with the same schema share one."""
    by_id: dict[int, SideCodec] = {}
    for topic, number in reader.ids.items():
        if number not in by_id:
            by_id[number] = SideCodec(reader, topic)
    return {topic: by_id[number] for topic, number in reader.ids.items()}


def _with_column(
    batch: pa.RecordBatch, given: str, name: str, kind: pa.DataType, change: Callable[[str, Any], Any]
) -> pa.RecordBatch:
    """The batch with a derived column, which replaces a column of the same name or is appended."""
    found = []
    topics, values = batch.column(FROM).to_pylist(), batch.column(given).to_pylist()
    for row, (topic, value) in enumerate(zip(topics, values, strict=True)):
        try:
            made = change(topic, value)
        except (SchemaFormatError, SchemaMissingError) as error:
            # Other errors, such as a registry that does not respond, are not caused by the record.
            refuse_row(error, batch, row)
        found.append(made)
    try:
        column = array_of(found, kind)
    except (ValueError, OverflowError, TypeError):
        for row, made in enumerate(found):
            try:
                array_of([made], kind)
            except (ValueError, OverflowError, TypeError) as error:
                refuse_row(error, batch, row)
        raise
    columns = dict(zip(batch.schema.names, batch.columns, strict=True)) | {name: column}
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
