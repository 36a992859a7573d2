"""A whole chain of SMTs as one function of a record, and what is to be known of it beforehand."""

from __future__ import annotations

from dataclasses import dataclass

from mirror_lib.transform.smt import model
from mirror_lib.transform.smt.apply import apply
from mirror_lib.transform.smt.converters import decode, encode
from mirror_lib.transform.smt.data import BYTES, OPTIONAL_BYTES, DataError, Schema, Value
from mirror_lib.transform.smt.errors import SmtError
from mirror_lib.transform.smt.model import ChainSettings, ConverterKind, ConverterSettings, Stage
from mirror_lib.transform.smt.predicates import applies
from mirror_lib.transform.smt.record import Header, RawRecord, Side, SmtRecord

_Part = tuple[Schema | None, Value]


@dataclass(frozen=True, slots=True)
class SmtChain:
    """The SMTs of a flow in their order. It pickles, holds no state, and may be called from several threads."""

    settings: ChainSettings
    #: Whether a key or value is decoded by its converter before an SMT works on it. MM2 does not: with false, every
    #: byte is what MM2 would write, where it would write anything. See `transform`.
    decodes: bool = True

    @property
    def deterministic(self) -> bool:
        """Whether the same record always gives the same bytes: no supported SMT looks at a clock or throws dice."""
        return True

    @property
    def may_drop(self) -> bool:
        """Whether some records do not arrive."""
        return self._has(model.Filter)

    @property
    def may_route(self) -> bool:
        """Whether some records go to another topic. None goes to another partition: MM2 sets it before the chain."""
        return self._has(model.RegexRouter, model.TimestampRouter)

    @property
    def may_change_key(self) -> bool:
        """Whether some records get another key."""
        return any(Side.KEY in stage.transform.changed_sides() for stage in self.settings.stages)

    @property
    def may_change_value(self) -> bool:
        """Whether some records get another value."""
        return any(Side.VALUE in stage.transform.changed_sides() for stage in self.settings.stages)

    @property
    def may_change_headers(self) -> bool:
        """Whether some records get other headers."""
        changes = self._has(model.InsertHeader, model.DropHeaders, model.HeaderFrom)
        return changes or self.settings.header_converter.kind is not ConverterKind.BYTES

    def apply(self, record: SmtRecord) -> SmtRecord | None:
        """What the chain makes of a record whose key and value are decoded already; None when it is dropped.

        Raises:
            SmtError: an SMT cannot take the record.
        """
        current: SmtRecord | None = record
        for stage in self.settings.stages:
            if current is None:
                break
            if applies(stage, current):
                current = _apply(stage, current)
        return current

    def transform(self, raw: RawRecord) -> RawRecord | None:
        """What the chain makes of a record as it stands in Kafka; None when it is dropped.

        A key or value is decoded when the first SMT works on it, so that records which predicates keep from all of them
        need not be of the converter's form, and written anew only if it was changed: else its bytes stay what they are.
        Headers are bytes to SMTs, as in MM2, and all are written by the header converter.

        Raises:
            SmtError: an SMT or a converter cannot take the record.
        """
        if not self.settings.stages:
            return raw
        # What MirrorSourceTask makes of a record.
        current = SmtRecord(
            raw.topic,
            raw.partition,
            raw.key,
            raw.value,
            tuple(Header(name, data, OPTIONAL_BYTES if data is None else BYTES) for name, data in raw.headers),
            raw.timestamp,
            OPTIONAL_BYTES,
            BYTES,
        )
        # The values that stand for the bytes as they came, and the sides that need no decoding any more.
        origin = {side: current.part(side) for side in Side}
        settled: frozenset[Side] = frozenset() if self.decodes else frozenset(Side)
        for stage in self.settings.stages:
            if not applies(stage, current):
                continue
            for side in stage.transform.sides() - settled:
                current = self._decoded(side, current)
                origin[side] = current.part(side)
            settled |= stage.transform.sides() | stage.transform.changed_sides()
            after = _apply(stage, current)
            if after is None:
                return None
            current = after
        return RawRecord(
            current.topic,
            current.partition,
            self._encoded(Side.KEY, raw.key, current, origin[Side.KEY]),
            self._encoded(Side.VALUE, raw.value, current, origin[Side.VALUE]),
            tuple((header.name, self._encoded_header(header)) for header in current.headers),
            current.timestamp,
        )

    def _has(self, *kinds: type[model.Transform]) -> bool:
        return any(isinstance(stage.transform, kinds) for stage in self.settings.stages)

    def _decoded(self, side: Side, record: SmtRecord) -> SmtRecord:
        data = record.part(side)[1]
        assert data is None or isinstance(data, bytes), "a side that an SMT has changed is not decoded"
        converter = self.settings.converter(side)
        try:
            return record.with_part(side, *decode(converter, data))
        except DataError as error:
            raise _failed(converter, error) from error

    def _encoded(self, side: Side, data: bytes | None, record: SmtRecord, origin: _Part) -> bytes | None:
        schema, value = record.part(side)
        if self.decodes and value is origin[1] and schema == origin[0]:
            return data
        return _encoded(self.settings.converter(side), schema, value)

    def _encoded_header(self, header: Header) -> bytes | None:
        return _encoded(self.settings.header_converter, header.schema, header.value)


def _apply(stage: Stage, record: SmtRecord) -> SmtRecord | None:
    try:
        return apply(stage.transform, record)
    except DataError as error:
        raise SmtError(stage.configured, stage.transform.class_name, str(error).rstrip(".")) from error


def _encoded(converter: ConverterSettings, schema: Schema | None, value: Value) -> bytes | None:
    try:
        return encode(converter, schema, value)
    except DataError as error:
        raise _failed(converter, error) from error


def _failed(converter: ConverterSettings, error: DataError) -> SmtError:
    return SmtError(converter.configured, converter.kind.value, str(error).rstrip("."))
