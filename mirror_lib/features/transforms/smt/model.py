"""The settings of transforms as values: one class for each SMT and each predicate, named as Connect's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from mirror_lib.features.transforms.smt.record import Side
from mirror_lib.features.transforms.smt.values.data import Schema, SchemaType, Value
from mirror_lib.features.transforms.smt.values.date_format import DateFormat

TRANSFORMS_PACKAGE = "org.apache.kafka.connect.transforms"
PREDICATES_PACKAGE = f"{TRANSFORMS_PACKAGE}.predicates"


@dataclass(frozen=True, slots=True)
class SettingProblem:
    """One finding in the settings."""

    #: The setting, without a flow's prefix.
    key: str
    #: One clause.
    message: str
    #: What to do, as one clause.
    action: str = ""
    #: True if the chain can be used nevertheless.
    warning: bool = False


@dataclass(frozen=True, slots=True)
class Transform:
    """The common part of all SMTs."""

    def sides(self) -> frozenset[Side]:
        """Return the parts of the record whose contents it reads."""
        return frozenset()

    def changed_sides(self) -> frozenset[Side]:
        """Return the parts that it may change."""
        return self.sides()

    def reads_fields(self) -> bool:
        """Return True if it fails on anything but a map or a struct."""
        return False

    @property
    def class_name(self) -> str:
        """The Java class by its short name, such as `MaskField$Value`."""
        return type(self).__name__


@dataclass(frozen=True, slots=True)
class _Sided(Transform):
    """An SMT with a `$Key` and a `$Value` class."""

    side: Side

    def sides(self) -> frozenset[Side]:
        return frozenset({self.side})

    @property
    def class_name(self) -> str:
        return f"{type(self).__name__}${self.side.title()}"


@dataclass(frozen=True, slots=True)
class _Fields(_Sided):
    """An SMT that works on the fields of a map or a struct."""

    def reads_fields(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class RegexRouter(Transform):
    """Renames topics whose whole name matches a Java regex."""

    regex: str
    replacement: str


@dataclass(frozen=True, slots=True)
class TimestampRouter(Transform):
    """Adds the record's time to the topic's name."""

    topic_format: str
    timestamp_format: DateFormat


@dataclass(frozen=True, slots=True)
class Filter(Transform):
    """Drops every record that reaches it."""


@dataclass(frozen=True, slots=True)
class InsertHeader(Transform):
    """Adds a header with a literal value."""

    header: str
    schema: Schema | None
    value: Value


@dataclass(frozen=True, slots=True)
class DropHeaders(Transform):
    """Removes the headers of the given names."""

    headers: frozenset[str]


@dataclass(frozen=True, slots=True)
class InsertedField:
    """The name of a field to insert; a suffix `!` makes it required, `?` optional, which is the default."""

    name: str
    optional: bool = True


@dataclass(frozen=True, slots=True)
class InsertField(_Fields):
    """Adds fields with facts of the record or a fixed text."""

    topic: InsertedField | None = None
    partition: InsertedField | None = None
    timestamp: InsertedField | None = None
    static: InsertedField | None = None
    static_value: str | None = None
    replace_null_with_default: bool = True


@dataclass(frozen=True, slots=True)
class MaskField(_Fields):
    """Replaces fields by a zero, an empty text or a replacement."""

    fields: tuple[str, ...]
    replacement: str | None = None
    replace_null_with_default: bool = True


@dataclass(frozen=True, slots=True)
class ReplaceField(_Fields):
    """Drops fields and renames them; an empty `include` keeps all."""

    exclude: frozenset[str] = frozenset()
    include: frozenset[str] = frozenset()
    renames: Mapping[str, str] = field(default_factory=dict)
    replace_null_with_default: bool = True


@dataclass(frozen=True, slots=True)
class ExtractField(_Fields):
    """Replaces the whole by one field."""

    #: As written, for messages.
    field: str
    #: The names on the path to it: one, unless `field.syntax.version` is V2 (KIP-821).
    path: tuple[str, ...]
    replace_null_with_default: bool = True


@dataclass(frozen=True, slots=True)
class HoistField(_Sided):
    """Makes the whole the only field of a new map or struct."""

    field: str


@dataclass(frozen=True, slots=True)
class Flatten(_Fields):
    """Moves the fields of nested maps and structs to the top."""

    delimiter: str = "."


@dataclass(frozen=True, slots=True)
class ValueToKey(Transform):
    """Builds the key from fields of the value."""

    fields: tuple[str, ...]
    replace_null_with_default: bool = True

    def sides(self) -> frozenset[Side]:
        return frozenset({Side.VALUE})

    def changed_sides(self) -> frozenset[Side]:
        return frozenset({Side.KEY})

    def reads_fields(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class HeaderFrom(_Fields):
    """Copies or moves fields to headers."""

    #: Pairs of field and header.
    headers: tuple[tuple[str, str], ...]
    move: bool
    replace_null_with_default: bool = True

    def changed_sides(self) -> frozenset[Side]:
        return self.sides() if self.move else frozenset()


@dataclass(frozen=True, slots=True)
class Cast(_Sided):
    """Changes the types of fields, or of the whole."""

    #: Empty when `whole` is given.
    fields: Mapping[str, SchemaType] = field(default_factory=dict)
    whole: SchemaType | None = None
    replace_null_with_default: bool = True

    def reads_fields(self) -> bool:
        return self.whole is None


class TimestampType(StrEnum):
    """The `target.type` of `TimestampConverter`."""

    STRING = "string"
    UNIX = "unix"
    DATE = "Date"
    TIME = "Time"
    TIMESTAMP = "Timestamp"


class UnixPrecision(StrEnum):
    """The `unix.precision` of `TimestampConverter`."""

    SECONDS = "seconds"
    MILLISECONDS = "milliseconds"
    MICROSECONDS = "microseconds"
    NANOSECONDS = "nanoseconds"


@dataclass(frozen=True, slots=True)
class TimestampConverter(_Sided):
    """Converts a moment to another representation."""

    target: TimestampType
    #: The field with the moment; None if the whole is one.
    field: str | None = None
    #: For texts.
    format: DateFormat | None = None
    precision: UnixPrecision = UnixPrecision.MILLISECONDS
    replace_null_with_default: bool = True

    def reads_fields(self) -> bool:
        return self.field is not None


@dataclass(frozen=True, slots=True)
class TopicNameMatches:
    """True for records whose whole topic name matches a Java regex."""

    pattern: str


@dataclass(frozen=True, slots=True)
class HasHeaderKey:
    """True for records with a header of that name."""

    name: str


@dataclass(frozen=True, slots=True)
class RecordIsTombstone:
    """True for records whose value is null."""


Predicate = TopicNameMatches | HasHeaderKey | RecordIsTombstone


@dataclass(frozen=True, slots=True)
class Stage:
    """One SMT of the chain with its condition (`TransformationStage`)."""

    #: As in `transforms`.
    name: str
    transform: Transform
    predicate: Predicate | None = None
    negate: bool = False

    @property
    def prefix(self) -> str:
        """The prefix of the stage's settings."""
        return f"transforms.{self.name}"


class ConverterKind(StrEnum):
    """The supported converters, by the short names of their classes."""

    BYTES = "ByteArrayConverter"
    STRING = "StringConverter"
    JSON = "JsonConverter"
    #: For headers only.
    SIMPLE_HEADER = "SimpleHeaderConverter"


@dataclass(frozen=True, slots=True)
class ConverterSettings:
    """One of `key.converter`, `value.converter` and `header.converter` with its settings."""

    #: The key that names the class.
    configured: str
    kind: ConverterKind = ConverterKind.BYTES
    #: Of `JsonConverter`: schema and payload are in an envelope. True by default, as in Connect.
    schemas_enable: bool = True
    #: Of `JsonConverter`: decimals are written as numbers, not as bytes in base64.
    numeric_decimals: bool = False
    #: Of `JsonConverter`: a null in a field with a default becomes the default.
    replace_null_with_default: bool = True


@dataclass(frozen=True, slots=True)
class ChainSettings:
    """All settings of the transforms of a flow in a properties file."""

    stages: tuple[Stage, ...] = ()
    key_converter: ConverterSettings = ConverterSettings("key.converter")
    value_converter: ConverterSettings = ConverterSettings("value.converter")
    header_converter: ConverterSettings = ConverterSettings("header.converter")

    def converter(self, side: Side) -> ConverterSettings:
        """The converter of one side."""
        return self.key_converter if side is Side.KEY else self.value_converter


@dataclass(frozen=True, slots=True)
class ParsedSettings:
    """The parsed chain, None if it cannot be used, and all problems."""

    chain: ChainSettings | None
    problems: tuple[SettingProblem, ...]

    @property
    def errors(self) -> tuple[SettingProblem, ...]:
        """The problems that are not warnings."""
        return tuple(problem for problem in self.problems if not problem.warning)
