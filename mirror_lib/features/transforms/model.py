"""The transforms of a flow, as values.

They are sent to Spark's executors, so nothing here imports more than the standard library and the naming rules: neither
PySpark nor the SQL parser.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from mirror_lib.config.data_plane import FlowChains, TopicChain
from mirror_lib.features.transforms.smt.chain import SmtChain
from mirror_lib.topology.java_regex import compile_list

if TYPE_CHECKING:
    from mirror_lib.config.model import FlowConfig

#: The columns that expressions see: those of Spark's Kafka source, after key and value are decoded.
SOURCE_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
#: The columns that a transform may set. The target sets the offset and the type of the timestamp.
TARGET_COLUMNS = ("key", "value", "headers", "timestamp", "topic", "partition")
#: The table name of the records in a SELECT.
RECORDS = "records"


class DataFormat(StrEnum):
    """How the bytes of a key or a value are decoded before expressions see them."""

    JSON = "json"
    AVRO = "avro"
    PROTOBUF = "protobuf"
    #: UTF-8 text.
    STRING = "string"
    #: Not decoded: expressions see binary.
    NONE = "none"

    @property
    def has_fields(self) -> bool:
        """True if expressions may name fields inside, such as `value.country`."""
        return self in (DataFormat.JSON, DataFormat.AVRO, DataFormat.PROTOBUF)

    @property
    def needs_registry(self) -> bool:
        """True if the schema comes from the source's schema registry."""
        return self in (DataFormat.AVRO, DataFormat.PROTOBUF)


@dataclass(frozen=True, slots=True)
class Decoding:
    """How the key or the value of a record is decoded.

    Attributes:
        format: of the bytes.
        schema: Spark DDL such as `country STRING, card STRING`; only JSON has one.
    """

    format: DataFormat = DataFormat.NONE
    schema: str | None = None


@dataclass(frozen=True, slots=True)
class DecodeSettings:
    """How key and value of a record are decoded."""

    key: Decoding = Decoding()
    value: Decoding = Decoding()


@dataclass(frozen=True, slots=True)
class ColumnExpressions:
    """Spark SQL for each column of the written record; None leaves the column unchanged."""

    key: str | None = None
    value: str | None = None
    headers: str | None = None
    timestamp: str | None = None
    topic: str | None = None
    partition: str | None = None

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Yield the columns that are set, with their expressions, in the order of `TARGET_COLUMNS`."""
        for column in TARGET_COLUMNS:
            expression = getattr(self, column)
            if expression is not None:
                yield column, expression

    def __bool__(self) -> bool:
        return any(getattr(self, each.name) is not None for each in fields(self))


@dataclass(frozen=True, slots=True)
class SelectStatement:
    """One SELECT over the records, as written in a file.

    Attributes:
        file: the path as in the setting.
        text: the file's content when the settings were read.
        columns: what the SELECT sets, lower case.
    """

    file: str
    text: str = field(repr=False)
    columns: tuple[str, ...] = ()


class FunctionKind(StrEnum):
    """The argument and result type of a Python function."""

    #: A DataFrame of PySpark: `package.module.function`.
    DATAFRAME = "dataframe"
    #: A record batch of Arrow: `package.module:function`.
    ARROW = "arrow"


@dataclass(frozen=True, slots=True)
class FunctionReference:
    """A Python function by its path; it is imported where it runs."""

    module: str
    name: str
    kind: FunctionKind

    def __str__(self) -> str:
        return f"{self.module}{':' if self.kind is FunctionKind.ARROW else '.'}{self.name}"


class Influence(StrEnum):
    """What a result depends on besides the record."""

    RANDOM = "chance"
    CLOCK = "the clock"
    #: Which task, partition or file of Spark the record is in.
    TASK = "the Spark task"
    #: User and environment of the process.
    SURROUNDINGS = "the environment"
    #: Unknown.
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class NonDeterminism:
    """A reason why the same record may not give the same result twice.

    Attributes:
        what: a function or a literal, as written.
        influence: what it depends on.
    """

    what: str
    influence: Influence

    def __str__(self) -> str:
        if self.influence is Influence.UNKNOWN:
            return f"the dependencies of {self.what} are unknown"
        return f"{self.what} depends on {self.influence.value}"


class Determinism(StrEnum):
    """Whether the same record always gives the same result."""

    YES = "deterministic"
    NO = "not deterministic"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Transform:
    """One named transform: a filter, columns or both; or one SELECT; or one Python function.

    Attributes:
        name: as in `mirror.transforms`.
        topics: Java regexes for whole names of source topics; None selects all topics of the flow.
        decode: how key and value are decoded first.
        filter: Spark SQL; records for which it is not true are dropped.
        columns: the columns that it sets.
        select: instead of filter and columns.
        function: instead of filter and columns.
        stated_deterministic: the value of `deterministic`, None if it is not set.
        non_determinism: what was found to make results differ.
        reads: the source columns that it reads, None if unknown.
        one_to_many: True if one record may become several.
    """

    name: str
    topics: tuple[str, ...] | None = None
    decode: DecodeSettings = DecodeSettings()
    filter: str | None = None
    columns: ColumnExpressions = ColumnExpressions()
    select: SelectStatement | None = None
    function: FunctionReference | None = None
    stated_deterministic: bool | None = None
    non_determinism: tuple[NonDeterminism, ...] = ()
    reads: frozenset[str] | None = frozenset()
    one_to_many: bool = False

    @property
    def determinism(self) -> Determinism:
        """The determinism by what is known of Spark, then by the user's setting.

        The source of a function is only inspected: the user's setting has priority over the findings, and without
        either the determinism is unknown.
        """
        seen = any(each.influence is not Influence.UNKNOWN for each in self.non_determinism)
        if seen and self.function is None:
            return Determinism.NO
        if self.stated_deterministic is not None:
            return Determinism.YES if self.stated_deterministic else Determinism.NO
        if seen:
            return Determinism.NO
        return Determinism.UNKNOWN if self.function is not None or self.non_determinism else Determinism.YES

    @property
    def what(self) -> str:
        """What it does, in short."""
        if self.select is not None:
            return f"SELECT of {self.select.file}"
        if self.function is not None:
            return f"function {self.function}"
        parts = [*(["filter"] if self.filter is not None else []), *(column for column, _ in self.columns)]
        return ", ".join(parts)

    @property
    def sets(self) -> frozenset[str]:
        """The columns that it sets; empty for a function, where it is unknown."""
        if self.select is not None:
            return frozenset(self.select.columns)
        return frozenset(name for name, _ in self.columns)

    def takes(self, topic: str) -> bool:
        """Return True if it applies to records of a source topic."""
        if self.topics is None:
            return True
        pattern = compile_list(self.topics)
        return pattern is not None and pattern.fullmatch(topic)

    def matching_pattern(self, topic: str) -> str | None:
        """Return the member of `topics` that matches a topic; the whole list if none matches alone.

        Members are joined before they match, as in MM2, so a flag in one of them can make another match.
        """
        if self.topics is None or not self.takes(topic):
            return None
        for member in self.topics:
            pattern = compile_list((member,))
            if pattern is not None and pattern.fullmatch(topic):
                return member
        return ", ".join(self.topics)


@dataclass(frozen=True, slots=True)
class SchemaRegistry:
    """A schema registry with Confluent's HTTP interface."""

    #: Tried in this order.
    urls: tuple[str, ...]
    user: str | None = None
    #: A secret: never print it.
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class TransformChain(TopicChain):
    """The transforms of a topic's records: Connect's first, then the project's own in their order."""

    transforms: tuple[Transform, ...] = ()
    smt: SmtChain | None = None
    source_registry: SchemaRegistry | None = None
    target_registry: SchemaRegistry | None = None

    def __bool__(self) -> bool:
        return bool(self.transforms or self.smt)

    @property
    def determinism(self) -> Determinism:
        """The determinism of its least certain member."""
        found = {each.determinism for each in self.transforms}
        return next((each for each in (Determinism.NO, Determinism.UNKNOWN) if each in found), Determinism.YES)

    @property
    def is_deterministic(self) -> bool:
        """True if all of its members certainly are."""
        return self.determinism is Determinism.YES

    @property
    def may_route(self) -> bool:
        """True if some records may go to a target partition other than their source partition's own."""
        return (self.smt is not None and self.smt.may_route) or any(
            each.function is not None or {"topic", "partition"} & each.sets for each in self.transforms
        )

    @property
    def sets_partition(self) -> bool:
        """True if records of one source partition may go to several partitions of a topic."""
        return any("partition" in each.sets for each in self.transforms)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its members, in their order."""
        of_smt = () if self.smt is None else tuple(stage.name for stage in self.smt.settings.stages)
        return (*of_smt, *(each.name for each in self.transforms))

    def why(self, topic: str) -> Iterator[str]:
        """Yield why each of its members applies to a topic."""
        if self.smt is not None:
            yield "Connect's transforms apply to all topics"
        for each in self.transforms:
            pattern = each.matching_pattern(topic)
            yield f"{each.name} applies to all topics" if pattern is None else f"{each.name} applies to {pattern}"


@dataclass(frozen=True, slots=True)
class FlowTransforms(FlowChains):
    """All transforms of a flow, in the order they are applied; without any, batches are copied unchanged."""

    transforms: tuple[Transform, ...] = ()
    source_registry: SchemaRegistry | None = None
    target_registry: SchemaRegistry | None = None
    #: Connect's transforms (`transforms=...`), which apply to all topics and come first.
    smt: SmtChain | None = None

    def __bool__(self) -> bool:
        return bool(self.transforms or self.smt)

    def chain_of(self, topic: str, *, heartbeats: bool = False) -> TransformChain:
        """Return the transforms of a source topic; an empty chain means a raw copy.

        Args:
            heartbeats: True if it holds heartbeats, which monitoring reads: only transforms that name topics apply.
        """
        taken = tuple(each for each in self.of(topic) if not heartbeats or each.topics is not None)
        return TransformChain(taken, self.smt, self.source_registry, self.target_registry)

    def of(self, topic: str) -> tuple[Transform, ...]:
        """Return the own transforms (`mirror.transforms`) of a source topic."""
        return tuple(transform for transform in self.transforms if transform.takes(topic))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the own transforms, in their order."""
        return tuple(each.name for each in self.transforms)

    def summary(self) -> list[dict[str, Any]]:
        """Return which transforms exist, as plain data; their texts may contain values of a config provider."""
        of_smt = () if self.smt is None else self.smt.settings.stages
        return [
            *({"name": stage.name, "type": stage.transform.class_name, "topics": None} for stage in of_smt),
            *({"name": each.name, "topics": each.topics} for each in self.transforms),
        ]

    def described(self) -> tuple[tuple[str, str, str, str], ...]:
        """Return name, topics, kind and determinism of each transform, in the order they are applied."""
        of_smt = () if self.smt is None else self.smt.settings.stages
        return (
            *((each.name, "all", each.transform.class_name, Determinism.YES.value) for each in of_smt),
            *(
                (each.name, "all" if each.topics is None else ", ".join(each.topics), each.what, each.determinism.value)
                for each in self.transforms
            ),
        )

    @property
    def files(self) -> tuple[str, ...]:
        """The files that the settings were read from besides the properties file."""
        return tuple(transform.select.file for transform in self.transforms if transform.select is not None)


NO_TRANSFORMS = FlowTransforms()


def transforms_of(flow: FlowConfig) -> FlowTransforms:
    """Return the transforms of a flow."""
    return flow.transforms if isinstance(flow.transforms, FlowTransforms) else NO_TRANSFORMS


def members_of(chain: TopicChain) -> TransformChain:
    """Return a chain with its members; those of a chain of the core are none."""
    return chain if isinstance(chain, TransformChain) else TransformChain()
