"""A chain of SMTs made ready for many records: what does not depend on the record is found out once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from mirror_lib.transform.smt.apply import apply, function_of
from mirror_lib.transform.smt.converters import decode, encode
from mirror_lib.transform.smt.data import BYTES, OPTIONAL_BYTES, DataError, Schema, Value
from mirror_lib.transform.smt.errors import SmtError
from mirror_lib.transform.smt.model import ChainSettings, ConverterKind, ConverterSettings, Stage
from mirror_lib.transform.smt.predicates import condition_of
from mirror_lib.transform.smt.record import Header, RawRecord, Side, SmtRecord

_EVERY_SIDE = frozenset(Side)


class _Step(NamedTuple):
    """A stage with what is known of it."""

    stage: Stage
    function: Callable[[Any, SmtRecord], SmtRecord | None]
    #: None where it is applied to every record.
    condition: Callable[[SmtRecord], bool] | None
    negate: bool
    #: The sides that it reads, and those that need no decoding after it.
    reads: frozenset[Side]
    settles: frozenset[Side]


class ChainRunner:
    """Runs a chain on one record after the other. It holds no state of records: threads may share it."""

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
                stage.transform.sides(),
                stage.transform.sides() | stage.transform.changed_sides(),
            )
            for stage in settings.stages
        )

    def transform(self, raw: RawRecord) -> RawRecord | None:
        """What the chain makes of a record as it stands in Kafka (`SmtChain.transform`); None when it is dropped.

        Raises:
            SmtError: an SMT or a converter cannot take the record.
        """
        if not self._steps:
            return raw
        # What MirrorSourceTask makes of a record.
        headers = tuple([Header(name, data, OPTIONAL_BYTES if data is None else BYTES) for name, data in raw.headers])
        current = SmtRecord(raw.topic, raw.partition, raw.key, raw.value, headers, raw.timestamp, OPTIONAL_BYTES, BYTES)
        # What stands for the bytes as they came, and the sides that need no decoding any more.
        key = value = current
        settled = frozenset() if self._decodes else _EVERY_SIDE
        for step in self._steps:
            if step.condition is not None and step.condition(current) == step.negate:
                continue
            if not step.settles <= settled:
                for side in step.reads - settled:
                    current = self._decoded(side, current)
                    if side is Side.KEY:
                        key = current
                    else:
                        value = current
                settled |= step.settles
            try:
                after = step.function(step.stage.transform, current)
            except DataError as error:
                raise _misfit(step.stage, error) from error
            if after is None:
                return None
            current = after
        return RawRecord(
            current.topic,
            current.partition,
            raw.key if self._is_untouched(Side.KEY, current, key) else _encoded(self._key, *current.part(Side.KEY)),
            raw.value
            if self._is_untouched(Side.VALUE, current, value)
            else _encoded(self._value, *current.part(Side.VALUE)),
            raw.headers if current.headers is headers and self._plain_headers else self._encoded_headers(current),
            current.timestamp,
        )

    def _decoded(self, side: Side, record: SmtRecord) -> SmtRecord:
        data = record.part(side)[1]
        assert data is None or isinstance(data, bytes), "a side that an SMT has changed is not decoded"
        converter = self._key if side is Side.KEY else self._value
        try:
            return record.with_part(side, *decode(converter, data))
        except DataError as error:
            raise _failed(converter, error) from error

    def _is_untouched(self, side: Side, record: SmtRecord, origin: SmtRecord) -> bool:
        """Whether a side is what its bytes were decoded into: then they stay what they are."""
        if not self._decodes:
            return False
        schema, value = record.part(side)
        before_schema, before = origin.part(side)
        return value is before and (schema is before_schema or schema == before_schema)

    def _encoded_headers(self, record: SmtRecord) -> tuple[tuple[str, bytes | None], ...]:
        return tuple([(each.name, _encoded(self._header, each.schema, each.value)) for each in record.headers])


def apply_stage(stage: Stage, record: SmtRecord) -> SmtRecord | None:
    """What a stage's SMT makes of a record; its predicate is not looked at.

    Raises:
        SmtError: it cannot take the record.
    """
    try:
        return apply(stage.transform, record)
    except DataError as error:
        raise _misfit(stage, error) from error


def _misfit(stage: Stage, error: DataError) -> SmtError:
    return SmtError(stage.configured, stage.transform.class_name, str(error).rstrip("."))


def _encoded(converter: ConverterSettings, schema: Schema | None, value: Value) -> bytes | None:
    try:
        return encode(converter, schema, value)
    except DataError as error:
        raise _failed(converter, error) from error


def _failed(converter: ConverterSettings, error: DataError) -> SmtError:
    return SmtError(converter.configured, converter.kind.value, str(error).rstrip("."))
