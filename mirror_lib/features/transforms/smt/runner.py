"""A chain of SMTs prepared for many records: everything that does not depend on the record is computed once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from mirror_lib.features.transforms.smt.apply import apply, function_of
from mirror_lib.features.transforms.smt.converters.converters import decode, encode
from mirror_lib.features.transforms.smt.errors import SmtError
from mirror_lib.features.transforms.smt.model import ChainSettings, ConverterKind, ConverterSettings, Stage
from mirror_lib.features.transforms.smt.predicates import condition_of
from mirror_lib.features.transforms.smt.record import Header, RawRecord, Side, SmtRecord
from mirror_lib.features.transforms.smt.values.data import BYTES, OPTIONAL_BYTES, DataError, Schema, Value

# Sides are bits here, and functions are looked up once, to keep the cost per record low.
_KEY, _VALUE = 1, 2
_KEY_SIDE, _VALUE_SIDE = Side.KEY, Side.VALUE
_BITS = {_KEY_SIDE: _KEY, _VALUE_SIDE: _VALUE}
_EVERY_SIDE = _KEY | _VALUE


class _Step(NamedTuple):
    """A stage with its precomputed properties."""

    stage: Stage
    function: Callable[[Any, SmtRecord], SmtRecord | None]
    #: None if it is applied to every record.
    condition: Callable[[SmtRecord], bool] | None
    negate: bool
    #: The sides that it reads, and those that need no decoding after it.
    reads: int
    settles: int


class ChainRunner:
    """Runs a chain on one record after the other. It has no state of records: threads may share it."""

    def __init__(self, settings: ChainSettings, *, decodes: bool) -> None:
        self._decodes = decodes
        self._key, self._value, self._header = (
            settings.key_converter,
            settings.value_converter,
            settings.header_converter,
        )
        self._plain_headers = self._header.kind is ConverterKind.BYTES
        self._steps = tuple(
            _Step(
                stage,
                function_of(stage.transform),
                None if stage.predicate is None else condition_of(stage.predicate),
                stage.negate,
                _bits(stage.transform.sides()),
                _bits(stage.transform.sides() | stage.transform.changed_sides()),
            )
            for stage in settings.stages
        )

    def transform(self, raw: RawRecord) -> RawRecord | None:
        """Apply the chain to a record with its bytes (`SmtChain.transform`); return None if it is dropped.

        Raises:
            SmtError: an SMT or a converter rejects the record.
        """
        if not self._steps:
            return raw
        # The record as MirrorSourceTask creates it.
        topic, partition, raw_key, raw_value, raw_headers, timestamp = raw
        headers = tuple([Header(name, data, OPTIONAL_BYTES if data is None else BYTES) for name, data in raw_headers])
        current = SmtRecord(topic, partition, raw_key, raw_value, headers, timestamp, OPTIONAL_BYTES, BYTES)
        # Represents the original bytes, and the sides that need no decoding any more.
        key = value = current
        settled = 0 if self._decodes else _EVERY_SIDE
        for step in self._steps:
            if step.condition is not None and step.condition(current) == step.negate:
                continue
            if step.settles & ~settled:
                to_decode = step.reads & ~settled
                if to_decode & _KEY:
                    current = key = current.with_part(_KEY_SIDE, *_decode(self._key, current.key))
                if to_decode & _VALUE:
                    current = value = current.with_part(_VALUE_SIDE, *_decode(self._value, current.value))
                settled |= step.settles
            try:
                after = step.function(step.stage.transform, current)
            except DataError as error:
                raise _misfit(step.stage, error) from error
            if after is None:
                return None
            current = after
        return self._to_raw(raw, current, headers, key, value)

    def _to_raw(
        self, raw: RawRecord, made: SmtRecord, headers: tuple[Header, ...], key: SmtRecord, value: SmtRecord
    ) -> RawRecord:
        """Return a record as it is to be stored in Kafka.

        Args:
            raw: the original record.
            headers: the resulting headers.
            key: holds the decoded key.
            value: likewise.
        """
        topic, partition, made_key, made_value, made_headers, timestamp, key_schema, value_schema = made
        # An unchanged decoded value keeps its bytes.
        keeps_key = self._decodes and made_key is key.key and _same(key_schema, key.key_schema)
        keeps_value = self._decodes and made_value is value.value and _same(value_schema, value.value_schema)
        return RawRecord(
            topic,
            partition,
            raw.key if keeps_key else _encode(self._key, key_schema, made_key),
            raw.value if keeps_value else _encode(self._value, value_schema, made_value),
            raw.headers if made_headers is headers and self._plain_headers else self._encoded_headers(made),
            timestamp,
        )

    def _encoded_headers(self, record: SmtRecord) -> tuple[tuple[str, bytes | None], ...]:
        return tuple([(each.name, _encode(self._header, each.schema, each.value)) for each in record.headers])


def _decode(converter: ConverterSettings, data: Value) -> tuple[Schema | None, Value]:
    assert data is None or isinstance(data, bytes), "a side that an SMT has changed is not decoded"
    try:
        return decode(converter, data)
    except DataError as error:
        raise _smt_error(converter, error) from error


def _same(schema: Schema | None, before: Schema | None) -> bool:
    return schema is before or schema == before


def _bits(sides: frozenset[Side]) -> int:
    return sum(_BITS[side] for side in sides)


def apply_stage(stage: Stage, record: SmtRecord) -> SmtRecord | None:
    """Return the result of a stage's SMT for a record; its predicate is not evaluated.

    Raises:
        SmtError: it rejects the record.
    """
    try:
        return apply(stage.transform, record)
    except DataError as error:
        raise _misfit(stage, error) from error


def _misfit(stage: Stage, error: DataError) -> SmtError:
    return SmtError(stage.prefix, stage.transform.class_name, str(error).rstrip("."))


def _encode(converter: ConverterSettings, schema: Schema | None, value: Value) -> bytes | None:
    try:
        return encode(converter, schema, value)
    except DataError as error:
        raise _smt_error(converter, error) from error


def _smt_error(converter: ConverterSettings, error: DataError) -> SmtError:
    return SmtError(converter.configured, converter.kind.value, str(error).rstrip("."))
