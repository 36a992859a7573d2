"""The resolved configuration as typed values, for the rest of the code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, GetPydanticSchema
from pydantic_core.core_schema import is_instance_schema, plain_serializer_function_ser_schema

from mirror_lib.config.copy_settings import CopySettings
from mirror_lib.config.data_plane import UNCHANGED, FlowChains
from mirror_lib.config.file.stamps import FileStamp
from mirror_lib.config.schedule import ON_NEW_RECORDS
from mirror_lib.problems import Problem as Problem
from mirror_lib.problems import Severity as Severity
from mirror_lib.topology.acls import AclPattern, AclResource
from mirror_lib.topology.handovers import NO_HANDOVERS, Handovers
from mirror_lib.topology.names import FlowId


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True, hide_input_in_errors=True)


class OffsetSyncsLocation(StrEnum):
    """The cluster that holds the offset-syncs topic (KIP-716)."""

    SOURCE = "source"
    TARGET = "target"


class IsolationLevel(StrEnum):
    """What a reader of the source sees of transactions."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


class Fencing(StrEnum):
    """How live writers of earlier runs are fenced from the target."""

    #: By the epoch of a transactional id: the broker rejects every older writer.
    TRANSACTIONAL = "transactional"
    #: No fencing, for targets that reject transactional ids; the run lock alone keeps runs apart.
    NONE = "none"


class AirflowExecution(StrEnum):
    """`mirror.airflow.execution`: where Airflow runs the flow's tasks."""

    IN_PROCESS = "in-process"
    EXTERNAL = "external"


class ExistingTarget(StrEnum):
    """What the first start of a partition does if its target already has records."""

    FAIL = "fail"
    APPEND = "append"


class GroupTranslation(StrEnum):
    """How the offsets are found at which consumer groups continue on the target."""

    #: By the exact offset map: the next record is the one that the group would read next on the source. By MM2's rule
    #: where the map does not have the records.
    EXACT = "exact"
    #: By offset-syncs, as MirrorMaker 2 does: never too late, and early by some records.
    MM2 = "mm2"


class GroupMetadata(StrEnum):
    """What happens to the metadata that groups commit with their offsets."""

    COPY = "copy"
    DROP = "drop"


class UncommittedPartitions(StrEnum):
    """What is committed on the target for partitions with records in which a group has no offset."""

    #: Nothing: such partitions are reported, and `auto.offset.reset` of the group's consumers decides.
    NONE = "none"
    #: The target's log start: the group reads all records.
    EARLIEST = "earliest"


class FirstStart(_Frozen):
    """Where a partition without a position begins; exactly one field is set.

    Attributes:
        reset: `earliest` or `latest`, as `auto.offset.reset`.
        timestamp_ms: epoch milliseconds: the first record with this timestamp or a later one.
        offset: this offset; the log start or end offset if the log does not have it.
    """

    reset: str | None = None
    timestamp_ms: int | None = None
    offset: int | None = None


class TopicFirstStart(_Frozen):
    """A first start for the topics whose whole name matches a Java regex."""

    pattern: str
    start: FirstStart


class ClientSettings(_Frozen):
    """The Java client properties of one client on one cluster, layered by MM2's rules and with variables resolved.

    `properties` always holds `bootstrap.servers`. It may hold secrets: never print it.
    """

    cluster: str
    role: str
    properties: Mapping[str, str] = Field(repr=False)


class FlowClients(_Frozen):
    """All clients of a flow (MM2's layering, mm2 `MirrorConnectorConfig` and Connect's worker rules)."""

    data_consumer: ClientSettings
    source_admin: ClientSettings
    target_admin: ClientSettings
    data_producer: ClientSettings
    offset_syncs_producer: ClientSettings
    offset_syncs_consumer: ClientSettings
    #: Reads and writes the internal topics on the target (positions, later checkpoints).
    target_internal: ClientSettings


class Rename(_Frozen):
    """Plain configuration for topic names beyond MM2's policies; applied before the replication policy's own rule."""

    #: Source topic -> target topic, `mirror.topics.rename=orders:sales,old:new`.
    explicit: Mapping[str, str] = Field(default_factory=dict)
    #: `mirror.topics.rename.regex`, a Java regex that must match the whole source name; groups serve the replacement.
    pattern: str | None = None
    #: `mirror.topics.rename.replacement`, Java syntax (`$1`).
    replacement: str | None = None
    #: `mirror.topics.merge.enabled`: several source topics may share one target topic.
    merge: bool = False


class ConfigRules(_Frozen):
    """What happens to topic configs beyond MM2's rules; names are Java regexes for whole config names.

    The first that names a config counts: `override`, `never`, `always`, `default`, then MM2's rules.
    """

    #: `mirror.configs.override`: values of remote topics, regardless of the source.
    override: Mapping[str, str] = Field(default_factory=dict)
    #: `mirror.configs.never`: not changed on the target.
    never: tuple[str, ...] = ()
    #: `mirror.configs.always`: the effective value on the source, at whatever level it is set.
    always: tuple[str, ...] = ()
    #: `mirror.configs.default`: the target cluster's own value.
    default: tuple[str, ...] = ()


class AclRules(_Frozen):
    """Which ACLs are copied and how; the defaults are MM2's."""

    resources: tuple[AclResource, ...] = (AclResource.TOPIC,)
    patterns: tuple[AclPattern, ...] = (AclPattern.LITERAL,)
    #: `mirror.acls.principals`: names on the target by names on the source.
    principals: Mapping[str, str] = Field(default_factory=dict)
    #: `mirror.acls.stage.writes.enabled`: write grants are staged in the ledger for the cutover.
    stage_writes: bool = False
    #: `mirror.acls.delete.enabled`: created ACLs are removed when the source no longer has them.
    delete: bool = False


#: Not validated: their classes are values already, and are checked when they are read.
_Transforms = Annotated[
    FlowChains,
    GetPydanticSchema(
        lambda _source, _handler: is_instance_schema(
            FlowChains, serialization=plain_serializer_function_ser_schema(lambda chains: chains.summary())
        )
    ),
]


class FlowConfig(_Frozen):
    """One flow's effective settings. Field names are MM2's with dots as underscores; defaults are MM2's."""

    flow: FlowId
    enabled: bool = False
    #: `source.cluster.alias`: what remote topics, positions and heartbeats call the source; None: the flow's name.
    source_cluster_alias: str | None = None
    #: `target.cluster.alias`: the same of the target.
    target_cluster_alias: str | None = None
    emit_heartbeats_enabled: bool = True

    replication_policy_class: str = "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"
    replication_policy_separator: str = "."
    replication_policy_internal_topic_separator_enabled: bool = True
    #: Every effective key that starts with `replication.policy`, for custom policies.
    replication_policy_options: Mapping[str, str] = Field(default_factory=dict, repr=False)

    topics: tuple[str, ...] = (".*",)
    #: As in Kafka 4.3's `DefaultTopicFilter` (KAFKA-17200); before, all `*.internal` and `*-internal` were excluded.
    topics_exclude: tuple[str, ...] = (r"mm2.*\.internal", r".*\.replica", "__.*")
    topic_filter_class: str = "org.apache.kafka.connect.mirror.DefaultTopicFilter"
    groups: tuple[str, ...] = (".*",)
    groups_exclude: tuple[str, ...] = ("console-consumer-.*", "connect-.*", "__.*")
    group_filter_class: str = "org.apache.kafka.connect.mirror.DefaultGroupFilter"
    config_properties_exclude: tuple[str, ...] = (
        r"follower\.replication\.throttled\.replicas",
        r"leader\.replication\.throttled\.replicas",
        r"message\.timestamp\.difference\.max\.ms",
        r"message\.timestamp\.type",
        r"unclean\.leader\.election\.enable",
        r"min\.insync\.replicas",
    )
    config_property_filter_class: str = "org.apache.kafka.connect.mirror.DefaultConfigPropertyFilter"
    use_defaults_from: str = "target"
    heartbeats_replication_enabled: bool = True

    replication_factor: int = 2
    offset_syncs_topic_replication_factor: int = 3
    offset_syncs_topic_location: OffsetSyncsLocation = OffsetSyncsLocation.SOURCE
    emit_offset_syncs_enabled: bool = True
    offset_lag_max: int = 100
    heartbeats_topic_replication_factor: int = 3
    checkpoints_topic_replication_factor: int = 3

    refresh_topics_enabled: bool = True
    refresh_topics_interval_seconds: int = 600
    refresh_groups_enabled: bool = True
    refresh_groups_interval_seconds: int = 600
    sync_topic_configs_enabled: bool = True
    sync_topic_configs_interval_seconds: int = 600
    sync_topic_acls_enabled: bool = True
    sync_topic_acls_interval_seconds: int = 600
    emit_checkpoints_enabled: bool = True
    emit_checkpoints_interval_seconds: int = 60
    sync_group_offsets_enabled: bool = False
    sync_group_offsets_interval_seconds: int = 60
    emit_heartbeats_interval_seconds: int = 1

    tasks_max: int = 1
    admin_timeout_ms: int = 60_000

    #: The target's Connect worker settings that are used in position records (mm2 worker config rules).
    offset_storage_topic: str = ""
    offset_storage_partitions: int = 25
    offset_storage_replication_factor: int = 3
    offset_flush_interval_ms: int = 60_000
    exactly_once_source_support: str = "disabled"

    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED

    rename: Rename = Field(default_factory=Rename)
    copy_settings: CopySettings = Field(default_factory=CopySettings)
    config_rules: ConfigRules = Field(default_factory=ConfigRules)
    acl_rules: AclRules = Field(default_factory=AclRules)
    #: `<source>.mirror.rate.limit.read.bytes`: bytes that all flows together read from the source per second; 0: no
    #: limit.
    source_rate_limit_read_bytes: int = 0
    #: `<target>.mirror.rate.limit.write.bytes`: bytes that all flows together write to the target per second; 0: no
    #: limit.
    target_rate_limit_write_bytes: int = 0
    fencing: Fencing = Fencing.TRANSACTIONAL
    old_records_in_transactions: bool = False
    #: `mirror.run.lease.seconds`: a run that has not renewed its lock for this time may be succeeded by another.
    run_lease_seconds: float = 30.0
    #: `mirror.ledger.history.days`: retention of the per-partition results of runs in the ledger; 0: forever.
    ledger_history_days: int = 90
    existing_target: ExistingTarget = ExistingTarget.FAIL
    group_translation: GroupTranslation = GroupTranslation.EXACT
    group_metadata: GroupMetadata = GroupMetadata.COPY
    group_uncommitted: UncommittedPartitions = UncommittedPartitions.NONE
    #: `mirror.first.start`; None: `auto.offset.reset` of the source's consumer applies.
    first_start: FirstStart | None = None
    #: `mirror.first.start.topics`; the first whose pattern matches has priority over `first_start`.
    topic_first_starts: tuple[TopicFirstStart, ...] = ()
    #: `mirror.quarantine.topic`; "" takes `mm2-quarantine.<source>.internal`.
    quarantine_topic: str = ""
    #: `mirror.schedule`: a cron expression, a preset such as `@hourly`, an interval such as `5m`, or
    #: `on-new-records`; None: by hand only.
    schedule: str | None = None
    #: `mirror.schedule.longest`, an interval: runs without new records, if `schedule` is `on-new-records`.
    schedule_longest: str = "10m"
    #: `mirror.verify.schedule`: the same of the flow's verification.
    verify_schedule: str | None = None
    #: `mirror.failback`: copies only topics whose writers a cutover has moved to its source.
    failback: bool = False
    #: The file disables the flow in the other direction (`enabled=false`); without the key this is False.
    opposite_ended: bool = False
    #: Not from the file: hand-overs of cutovers, from `ledger.handovers`.
    handovers: Handovers = NO_HANDOVERS
    #: `mirror.airflow.pool`: the Airflow pool whose slots the flow's Spark jobs take; None: the default one.
    airflow_pool: str | None = None
    #: `mirror.airflow.execution`.
    airflow_execution: AirflowExecution = AirflowExecution.IN_PROCESS
    #: `mirror.airflow.deadline.seconds`: a DAG run that takes longer raises a deadline alert; 0: none.
    airflow_deadline_seconds: float = 0.0
    #: `mirror.airflow.deferrable`: the copy needs no worker slot while Spark copies.
    airflow_deferrable: bool = False
    #: `mirror.spark.connection`: the Airflow connection that names the Spark master.
    spark_connection: str = "spark_default"
    #: `mirror.transforms` and Connect's `transforms`: changes to the records.
    transforms: _Transforms = Field(default=UNCHANGED, repr=False)

    #: Texts of the settings of features that the file has; `feature.Setting.of` returns one.
    of_features: Mapping[str, str] = Field(default_factory=dict, repr=False, exclude=True)

    clients: FlowClients

    @property
    def starts_on_new_records(self) -> bool:
        """True if new records of the source start runs."""
        return self.schedule == ON_NEW_RECORDS

    @property
    def periodic_schedule(self) -> str | None:
        """The schedule of the runs that start without new records, as `parse_schedule` takes it."""
        return self.schedule_longest if self.starts_on_new_records else self.schedule

    @property
    def source_alias(self) -> str:
        """The source's name in data stored in Kafka; everything else of the project uses the flow's name."""
        return self.flow.source if self.source_cluster_alias is None else self.source_cluster_alias

    @property
    def target_alias(self) -> str:
        """The target's name in data stored in Kafka."""
        return self.flow.target if self.target_cluster_alias is None else self.target_cluster_alias

    @property
    def transactions(self) -> bool:
        """True if transactions are used where nothing else gives exactly-once."""
        return self.exactly_once_source_support == "enabled"


class Provenance(_Frozen):
    """The origin of an effective value."""

    value: str = Field(repr=False)
    #: The key as written in the file, None for a default.
    key: str | None = None
    line: int | None = None
    #: One of `default`, `top level`, `cluster A`, `flow A->B`, `worker of B`.
    origin: str = "default"
    #: The text in the file if variables in it were replaced; None if `value` is that text.
    written: str | None = Field(default=None, repr=False)
    #: True if `value` still has variables, whose values are not needed where the file was read.
    later: bool = False


def _no_pair(name: FlowId) -> FlowConfig:
    raise KeyError(str(name))


@dataclass(frozen=True, slots=True, repr=False)
class UnnamedPairs:
    """Pairs of clusters that MM2 runs for their heartbeats though no line of the file names them.

    n clusters have up to n * (n - 1) of them, so each is derived when it is asked for.
    """

    names: frozenset[FlowId] = frozenset()
    derive: Callable[[FlowId], FlowConfig] = _no_pair

    def __len__(self) -> int:
        """Return their number."""
        return len(self.names)

    def __iter__(self) -> Iterator[FlowConfig]:
        """Derive all of them."""
        return map(self.derive, sorted(self.names))

    def any(self) -> FlowConfig | None:
        """Return one of them: they differ by the settings of their clusters only."""
        return self.derive(min(self.names)) if self.names else None

    def changed(self, change: Callable[[FlowConfig], FlowConfig]) -> UnnamedPairs:
        """Return them with a change that is made when they are derived."""
        return replace(self, derive=lambda name: change(self.derive(name)))


class MirrorConfig(_Frozen):
    """A whole file: its flows, its ledger and its problems (errors raise on load)."""

    path: str
    clusters: tuple[str, ...]
    #: The pairs of clusters that lines of the file enable or name.
    flows: tuple[FlowConfig, ...]
    #: The other pairs that MM2 would run.
    unnamed: UnnamedPairs = Field(default=UnnamedPairs(), repr=False, exclude=True)
    #: May hold a password: never print it.
    ledger_url: str | None = Field(default=None, repr=False)
    #: The file and those that its providers read: if one of them changes, this may be out of date.
    sources: tuple[FileStamp, ...] = Field(default=(), repr=False, exclude=True)
    warnings: tuple[Problem, ...] = ()

    def flow(self, flow: FlowId | str) -> FlowConfig:
        """Return the settings of one flow, or of a pair of clusters that only emits heartbeats.

        Raises:
            KeyError: the file has no such flow.
        """
        wanted = FlowId.parse(flow) if isinstance(flow, str) else flow
        found = self.find(wanted)
        if found is None:
            raise KeyError(str(wanted))
        return found

    def find(self, flow: FlowId) -> FlowConfig | None:
        """As `flow`; None if the file has no such flow."""
        for candidate in self.flows:
            if candidate.flow == flow:
                return candidate
        return self.unnamed.derive(flow) if flow in self.unnamed.names else None

    @property
    def enabled_flows(self) -> tuple[FlowConfig, ...]:
        """The flows that replicate topics."""
        return tuple(flow for flow in self.flows if flow.enabled)


def jsonable(model: BaseModel) -> dict[str, Any]:
    """Return a model as plain JSON data without possible secrets: clients, policy options and the ledger's address."""
    data: dict[str, Any] = _without_secrets(model.model_dump(mode="json"))
    return data


_SECRET_FIELDS = frozenset({"clients", "properties", "replication_policy_options", "ledger_url"})


def _without_secrets(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _without_secrets(value) for key, value in data.items() if key not in _SECRET_FIELDS}
    return [_without_secrets(member) for member in data] if isinstance(data, list) else data
