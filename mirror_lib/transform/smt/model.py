"""What the settings of transforms say, as values: one class for each SMT and each predicate, named as Connect's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from mirror_lib.transform.smt.record import Side
from mirror_lib.transform.smt.values import DateFormat, Schema, SchemaType, Value

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
    #: Whether the chain can be used nevertheless.
    warning: bool = False


@dataclass(frozen=True, slots=True)
class Transform:
    """What all SMTs have in common."""

    def sides(self) -> frozenset[Side]:
        """The parts of the record whose contents it reads."""
        return frozenset()

    def changed_sides(self) -> frozenset[Side]:
        """Those that it may change."""
        return self.sides()

    def reads_fields(self) -> bool:
        """Whether it fails on anything but a map or a struct."""
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
    """One that works on the fields of a map or a struct."""

    def reads_fields(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class RegexRouter(Transform):
    """Renames topics whose whole name matches a Java regex."""

    regex: str
    replacement: str


@dataclass(frozen=True, slots=True)
class TimestampRouter(Transform):
    """Puts the record's time into the topic's name."""

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
    """Takes away the headers of the given names."""

    headers: frozenset[str]


@dataclass(frozen=True, slots=True)
class InsertedField:
    """The name of a field to insert; `!` behind it makes it required, `?` optional as it is without."""

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
    """Puts a zero, an empty text or a replacement in the place of fields."""

    fields: tuple[str, ...]
    replacement: str | None = None
    replace_null_with_default: bool = True


@dataclass(frozen=True, slots=True)
class ReplaceField(_Fields):
    """Leaves out fields and renames them; an empty `include` takes all."""

    exclude: frozenset[str] = frozenset()
    include: frozenset[str] = frozenset()
    renames: Mapping[str, str] = field(default_factory=dict)
    replace_null_with_default: bool = True


@dataclass(frozen=True, slots=True)
class ExtractField(_Fields):
    """Puts one field in the place of the whole."""

    #: As it was written, for messages.
    field: str
    #: The names on the way to it: one, unless `field.syntax.version` is V2 (KIP-821).
    path: tuple[str, ...]
    replace_null_with_default: bool = True


@dataclass(frozen=True, slots=True)
class HoistField(_Sided):
    """Makes the whole the only field of a new map or struct."""

    field: str


@dataclass(frozen=True, slots=True)
class Flatten(_Fields):
    """Brings the fields of nested maps and structs to the top."""

    delimiter: str = "."


@dataclass(frozen=True, slots=True)
class ValueToKey(Transform):
    """Makes a key of fields of the value."""

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
    """Brings a moment into another form."""

    target: TimestampType
    #: The field with the moment; None when the whole is one.
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
    def configured(self) -> str:
        """The key that the stage's settings begin with."""
        return f"transforms.{self.name}"


class ConverterKind(StrEnum):
    """The converters that are known, by the short names of their classes."""

    BYTES = "ByteArrayConverter"
    STRING = "StringConverter"
    JSON = "JsonConverter"
    #: For headers only.
    SIMPLE_HEADER = "SimpleHeaderConverter"


@dataclass(frozen=True, slots=True)
class ConverterSettings:
    """One of `key.converter`, `value.converter` and `header.converter` with what belongs to it."""

    #: The key that names the class.
    configured: str
    kind: ConverterKind = ConverterKind.BYTES
    #: Of `JsonConverter`: whether schema and payload stand in an envelope. True unless told otherwise, as in Connect.
    schemas_enable: bool = True
    #: Of `JsonConverter`: whether decimals are written as numbers, and not as bytes in base64.
    numeric_decimals: bool = False
    #: Of `JsonConverter`: whether a null in a field with a default becomes the default.
    replace_null_with_default: bool = True


@dataclass(frozen=True, slots=True)
class ChainSettings:
    """All that a properties file says of the transforms of a flow."""

    stages: tuple[Stage, ...] = ()
    key_converter: ConverterSettings = ConverterSettings("key.converter")
    value_converter: ConverterSettings = ConverterSettings("value.converter")
    header_converter: ConverterSettings = ConverterSettings("header.converter")

    def converter(self, side: Side) -> ConverterSettings:
        """The converter of one side."""
        return self.key_converter if side is Side.KEY else self.value_converter


@dataclass(frozen=True, slots=True)
class ParsedSettings:
    """What was read: the chain, None when it cannot be used, and all problems."""

    chain: ChainSettings | None
    problems: tuple[SettingProblem, ...]

    @property
    def errors(self) -> tuple[SettingProblem, ...]:
        """The problems that are no mere warnings."""
        return tuple(problem for problem in self.problems if not problem.warning)
