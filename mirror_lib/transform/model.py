"""What a flow does to records on their way, as values.

They travel to Spark's executors, so nothing here imports more than the standard library and the rules of names: neither
PySpark nor the SQL parser.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from enum import StrEnum

from mirror_lib.topology import compile_list
from mirror_lib.transform.smt import SmtChain

#: The columns that expressions see: those of Spark's Kafka source, after key and value are decoded.
SOURCE_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
#: The columns that a transform may set. The offset and the type of the timestamp are the target's business.
TARGET_COLUMNS = ("key", "value", "headers", "timestamp", "topic", "partition")
#: The name that a SELECT knows the records by.
RECORDS = "records"


class DataFormat(StrEnum):
    """How the bytes of a key or a value are read before expressions see them."""

    JSON = "json"
    AVRO = "avro"
    PROTOBUF = "protobuf"
    #: UTF-8 text.
    STRING = "string"
    #: Not at all: expressions see binary.
    NONE = "none"

    @property
    def has_fields(self) -> bool:
        """Whether expressions may name fields inside, such as `value.country`."""
        return self in (DataFormat.JSON, DataFormat.AVRO, DataFormat.PROTOBUF)

    @property
    def needs_registry(self) -> bool:
        """Whether the schema comes from the source's schema registry."""
        return self in (DataFormat.AVRO, DataFormat.PROTOBUF)


@dataclass(frozen=True, slots=True)
class Decoding:
    """How one side of a record, its key or its value, is read.

    Attributes:
        format: of the bytes.
        schema: Spark DDL such as `country STRING, card STRING`; only JSON has one.
    """

    format: DataFormat = DataFormat.NONE
    schema: str | None = None


@dataclass(frozen=True, slots=True)
class DecodeSettings:
    """How both sides of a record are read."""

    key: Decoding = Decoding()
    value: Decoding = Decoding()


@dataclass(frozen=True, slots=True)
class ColumnExpressions:
    """Spark SQL for each column of the record that is written; None leaves the column as it was read."""

    key: str | None = None
    value: str | None = None
    headers: str | None = None
    timestamp: str | None = None
    topic: str | None = None
    partition: str | None = None

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """The columns that are set, with their expressions, in the order of `TARGET_COLUMNS`."""
        for column in TARGET_COLUMNS:
            expression = getattr(self, column)
            if expression is not None:
                yield column, expression

    def __bool__(self) -> bool:
        return any(getattr(self, each.name) is not None for each in fields(self))


@dataclass(frozen=True, slots=True)
class SelectStatement:
    """One SELECT over the records, as it stands in a file.

    Attributes:
        file: the path as the setting has it.
        text: the file's content when the settings were read.
        columns: what the SELECT sets, lower case.
    """

    file: str
    text: str = field(repr=False)
    columns: tuple[str, ...] = ()


class FunctionKind(StrEnum):
    """What a Python function is given and returns."""

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
    #: Who runs it, and where.
    SURROUNDINGS = "the surroundings"
    #: It cannot be seen.
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
            return f"what {self.what} depends on cannot be seen"
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
        topics: Java regexes for whole names of source topics; None takes all topics of the flow.
        decode: how key and value are read before.
        filter: Spark SQL; records for which it is not true are dropped.
        columns: what is set anew.
        select: instead of filter and columns.
        function: instead of filter and columns.
        stated_deterministic: what `deterministic` says, None when it is not set.
        non_determinism: what was seen to make results differ.
        reads: the source columns that it reads, None when that cannot be seen.
        one_to_many: whether one record may become several.
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
        """What Spark is known to do counts, then what the user says.

        A function is only looked at from outside: what the user says of it counts more than what was seen, and when
        neither says anything it stays unknown.
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
    def sets(self) -> frozenset[str]:
        """The columns that it sets; of a function it cannot be seen, and none is told."""
        if self.select is not None:
            return frozenset(self.select.columns)
        return frozenset(name for name, _ in self.columns)

    def takes(self, topic: str) -> bool:
        """Whether records of a source topic go through it."""
        if self.topics is None:
            return True
        pattern = compile_list(self.topics)
        return pattern is not None and pattern.fullmatch(topic)

    def matching_pattern(self, topic: str) -> str | None:
        """The member of `topics` that takes a topic; the whole list when none does it alone.

        Members are joined before they match, as MM2 joins them, so a flag in one of them may be what lets another
        match.
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
class TransformChain:
    """What the records of a topic go through: Connect's transforms first, then ours in their order."""

    transforms: tuple[Transform, ...] = ()
    smt: SmtChain | None = None
    source_registry: SchemaRegistry | None = None
    target_registry: SchemaRegistry | None = None

    def __bool__(self) -> bool:
        return bool(self.transforms or self.smt)

    @property
    def determinism(self) -> Determinism:
        """Whether the same record always gives the same result: no more than its least certain member."""
        found = {each.determinism for each in self.transforms}
        return next((each for each in (Determinism.NO, Determinism.UNKNOWN) if each in found), Determinism.YES)

    @property
    def may_route(self) -> bool:
        """Whether some records may go to another partition of the target than their source partition's own."""
        return (self.smt is not None and self.smt.may_route) or any(
            each.function is not None or {"topic", "partition"} & each.sets for each in self.transforms
        )

    @property
    def sets_partition(self) -> bool:
        """Whether records of one source partition may go to several partitions of a topic."""
        return any("partition" in each.sets for each in self.transforms)

    @property
    def comparable(self) -> bool:
        """Whether what an interrupted run has written can always be told by making the rows again."""
        return self.determinism is Determinism.YES and not self.may_route

    @property
    def names(self) -> tuple[str, ...]:
        """What its members are called, in their order."""
        of_smt = () if self.smt is None else tuple(stage.name for stage in self.smt.settings.stages)
        return (*of_smt, *(each.name for each in self.transforms))


@dataclass(frozen=True, slots=True)
class FlowTransforms:
    """All transforms of a flow, in the order they are applied; without any, batches are copied as they are."""

    transforms: tuple[Transform, ...] = ()
    source_registry: SchemaRegistry | None = None
    target_registry: SchemaRegistry | None = None
    #: Connect's transforms (`transforms=...`), which take all topics and come first.
    smt: SmtChain | None = None

    def __bool__(self) -> bool:
        return bool(self.transforms or self.smt)

    def chain_of(self, topic: str, *, heartbeats: bool = False) -> TransformChain:
        """What records of a source topic go through; an empty chain means a raw copy.

        Args:
            heartbeats: whether it holds heartbeats, which monitoring reads: only transforms that name topics take it.
        """
        taken = tuple(each for each in self.of(topic) if not heartbeats or each.topics is not None)
        return TransformChain(taken, self.smt, self.source_registry, self.target_registry)

    def of(self, topic: str) -> tuple[Transform, ...]:
        """The transforms that records of a source topic go through; none means a raw copy."""
        return tuple(transform for transform in self.transforms if transform.takes(topic))

    @property
    def files(self) -> tuple[str, ...]:
        """The files that the settings were read from besides the properties file."""
        return tuple(transform.select.file for transform in self.transforms if transform.select is not None)


NO_TRANSFORMS = FlowTransforms()
