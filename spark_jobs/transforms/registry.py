"""Keys and values with schema ids as Spark columns: decoded before a transform, encoded again after it.

A transform's result is encoded with the schema with which it was decoded, unless it is already bytes, or text while the
schema's values are records: then it is written unchanged. Until the last transform is done, schema ids are those of
the source; then they become those of the target, if it has a registry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as sf
from pyspark.sql.types import BinaryType, StructField, StructType

from mirror_lib.errors import ConfigurationError
from mirror_lib.features.transforms.model import DataFormat, DecodeSettings, SchemaRegistry, Transform, TransformChain
from mirror_lib.features.transforms.schema_use.registry_sides import (
    SideReader,
    SideRenumbering,
    access_of,
    column_of,
    reader_of,
)
from spark_jobs.sealing import seal
from spark_jobs.spark_versions import from_arrow_table
from spark_jobs.transforms.columns import is_document
from spark_jobs.transforms.hidden_columns import DECODED
from spark_jobs.transforms.registry_tasks import decode_sides, encode_sides, renumber_sides
from spark_jobs.transforms.state import SIDES, old, old_name, types_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType


#: Prefix of the names of decoded sides.


class RegistrySides:
    """The sides of a chain's records that have schemas in a registry."""

    def __init__(self, chain: TransformChain, target_topic_of: Mapping[str, str] | Callable[[str], str]) -> None:
        """Create it without a request.

        Args:
            chain: chain of the topics.
            target_topic_of: has all topics, if a transform of the chain needs a registry.
        """
        self._chain = chain
        self._topics = target_topic_of
        self._readers: dict[str, SideReader] = {}

    def needed_sides(self, decode: DecodeSettings) -> tuple[str, ...]:
        """The sides that are decoded with a registry."""
        return tuple(side for side in SIDES if _format(decode, side).needs_registry)

    def decode(
        self, frame: DataFrame, transform: Transform, sides: Sequence[str]
    ) -> tuple[DataFrame, dict[str, Column]]:
        """The frame between transforms with additional columns: some of these sides, decoded.

        Raises:
            ConfigurationError: a registry or subject is missing, or topics differ.
            SchemaRegistryError: the registry does not respond.
            SchemaFormatError: a schema has no corresponding column type.
        """
        if not sides:
            return frame, {}
        readers = [(f"{DECODED}{side}", self._reader(transform.decode, side)) for side in sides]
        types = {column: self._type(frame, reader) for column, reader in readers}
        task = partial(decode_sides, *seal(readers))
        made = frame.mapInArrow(task, _schema(frame, types))
        return made, {side: sf.col(f"{DECODED}{side}") for side in sides}

    def encode(self, made: DataFrame, transform: Transform, new: Mapping[str, str], *, replaces: bool) -> DataFrame:
        """The frame with values that were set, as bytes, if they are encoded with a schema.

        Args:
            new: sides that were set, with the columns of the new values.
            replaces: whether only the values that were set are needed of these sides; then only they are sent to
                Python.

        Raises:
            ConfigurationError: the new values have other fields than the schema.
        """
        types = types_of(made)
        readers = []
        for side in self.needed_sides(transform.decode):
            if side not in new:
                continue
            reader, kind = self._reader(transform.decode, side), types[new[side]]
            of_records = is_document(self._type(made, reader))
            if not (is_document(kind) or (not of_records and kind.typeName() != "binary")):
                continue
            _check_fields(kind, reader, f"the {side} that the transform {transform.name} sets")
            readers.append((new[side], reader))
            if side == "value":
                # A tombstone stays a tombstone, regardless of the transform's result.
                made = made.withColumn(new[side], sf.when(old("value").isNotNull(), sf.col(new[side])))
            if replaces:
                made = made.withColumn(old_name(side), sf.when(old(side).isNotNull(), sf.lit(b"")))
        if not readers:
            return made
        schema = _schema(made, {column: BinaryType() for column, _ in readers})
        return made.mapInArrow(partial(encode_sides, *seal(readers)), schema)

    def renumber(self, frame: DataFrame) -> DataFrame:
        """The frame with the schema ids of the target, after the last transform."""
        source, target = self._chain.source_registry, self._chain.target_registry
        needed = {side for each in self._chain.transforms for side in self.needed_sides(each.decode)}
        if source is None or target is None or not needed or access_of(source) == access_of(target):
            return frame
        topics = self._known_topics()
        sides = [
            SideRenumbering(side, access_of(source), access_of(target), topics) for side in SIDES if side in needed
        ]
        return frame.mapInArrow(partial(renumber_sides, *seal(sides)), frame.schema)

    def _reader(self, decode: DecodeSettings, side: str) -> SideReader:
        known = self._readers.get(side)
        chosen = _format(decode, side)
        if known is None or known.format is not chosen:
            known = self._readers[side] = reader_of(side, chosen, self._source(), self._known_topics())
        return known

    def _source(self) -> SchemaRegistry:
        if self._chain.source_registry is None:
            raise ConfigurationError(
                "Avro and Protobuf are decoded with the source's schema registry, which is not set.",
                action="Set mirror.transform.registry.source.url.",
            )
        return self._chain.source_registry

    def _known_topics(self) -> Mapping[str, str]:
        if callable(self._topics):
            raise TypeError("which topics there are must be known where a schema registry is used: give a mapping")
        return self._topics

    def _type(self, frame: DataFrame, reader: SideReader) -> DataType:
        """Spark's type for the decoded side."""
        # Spark Connect needs at least one row.
        table = pa.table({"column": pa.nulls(1, column_of(reader).kind)})
        return types_of(from_arrow_table(frame.sparkSession, table))["column"]


def _format(decode: DecodeSettings, side: str) -> DataFormat:
    return (decode.key if side == "key" else decode.value).format


def _schema(frame: DataFrame, types: Mapping[str, DataType]) -> StructType:
    """The schema of a frame, with other types for some columns and additional columns."""
    known = {field.name: field.dataType for field in frame.schema.fields}
    return StructType([StructField(name, kind, True) for name, kind in {**known, **types}.items()])


def _check_fields(kind: DataType, reader: SideReader, what: str) -> None:
    """Refuse a struct that cannot be encoded with the schema, before any record is read."""
    column = column_of(reader)
    if not isinstance(kind, StructType) or not pa.types.is_struct(column.kind):
        return
    known = {column.kind.field(number).name for number in range(column.kind.num_fields)}
    set_names = {field.name for field in kind.fields}
    unknown, missing = sorted(set_names - known), sorted(column.required - set_names)
    if unknown or missing:
        parts = [f"has the fields {', '.join(unknown)}, which are not in its schema"] if unknown else []
        parts += [f"is missing the fields {', '.join(missing)}"] if missing else []
        raise ConfigurationError(
            f"{what} {' and '.join(parts)}.",
            action="Use the schema's fields, or write it as JSON with to_json(...).",
        )
