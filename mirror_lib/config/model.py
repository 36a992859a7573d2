"""The resolved configuration as typed values, for the rest of the code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, Field, GetPydanticSchema
from pydantic_core.core_schema import is_instance_schema, plain_serializer_function_ser_schema

from mirror_lib.config.copy_settings import CopySettings
from mirror_lib.config.data_plane import UNCHANGED, FlowChains
from mirror_lib.config.file.stamps import FileStamp
from mirror_lib.config.first_start import FirstStart as FirstStart
from mirror_lib.config.first_start import TopicFirstStart as TopicFirstStart
from mirror_lib.config.first_start import parse_first_start, parse_topic_first_starts
from mirror_lib.config.frozen import Frozen, own
from mirror_lib.config.schedule import ON_NEW_RECORDS, parse_flow_schedule, parse_interval, parse_schedule
from mirror_lib.config.settings.rename_keys import Rename as Rename
from mirror_lib.config.settings.sync_keys import AclRules as AclRules
from mirror_lib.config.settings.sync_keys import ConfigRules as ConfigRules
from mirror_lib.problems import Problem as Problem
from mirror_lib.problems import Severity as Severity
from mirror_lib.topology.handovers import NO_HANDOVERS, Handovers
from mirror_lib.topology.names import FlowId


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


class ClientSettings(Frozen):
    """The Java client properties of one client on one cluster, layered by MM2's rules and with variables resolved.

    `properties` always holds `bootstrap.servers`. It may hold secrets: never print it.
    """

    cluster: str
    role: str
    properties: Mapping[str, str] = Field(repr=False)


class FlowClients(Frozen):
    """All clients of a flow (MM2's layering, mm2 `MirrorConnectorConfig` and Connect's worker rules)."""

    data_consumer: ClientSettings
    source_admin: ClientSettings
    target_admin: ClientSettings
    data_producer: ClientSettings
    offset_syncs_producer: ClientSettings
    offset_syncs_consumer: ClientSettings
    #: Reads and writes the internal topics on the target (positions, later checkpoints).
    target_internal: ClientSettings


#: Not validated: their classes are values already, and are checked when they are read.
_Transforms = Annotated[
    FlowChains,
    GetPydanticSchema(
        lambda _source, _handler: is_instance_schema(
            FlowChains, serialization=plain_serializer_function_ser_schema(lambda chains: chains.summary())
        )
    ),
]


def _or_none(text: str) -> str | None:
    return text.strip() or None


def _read_flow_schedule(text: str) -> str | None:
    parse_flow_schedule(text)
    return " ".join(text.split()) or None


def _read_schedule(text: str) -> str | None:
    parse_schedule(text)
    return " ".join(text.split()) or None


def _read_interval(text: str) -> str:
    parse_interval(text)
    return text.strip()


class FlowConfig(Frozen):
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

    schedule: str | None = own(
        None,
        "Schedule of the flow's DAG: a cron expression with five fields, a preset such as `@hourly`, or an interval "
        "such as `30s`, `5m`, `2h`, `1d`. `on-new-records`: a run starts when the source has new records. Empty: "
        "manual runs only.",
        text="",
        read=_read_flow_schedule,
    )
    schedule_longest: str = own(
        "10m",
        "With `mirror.schedule = on-new-records`: interval of runs that start without new records, for the sync "
        "steps and heartbeats; an interval such as `10m`.",
        read=_read_interval,
    )
    verify_schedule: str | None = own(
        None,
        "Schedule of the DAG that compares the target with the source, in the format of `mirror.schedule`; each run "
        "compares the records since the last one. Empty: manual runs only.",
        text="",
        read=_read_schedule,
    )
    copy_settings: CopySettings = Field(default_factory=CopySettings)
    rename: Rename = Field(default_factory=Rename)
    transforms: _Transforms = own(
        UNCHANGED,
        "Names of the transforms, in order; each has its own settings, see below and [transforms.md](transforms.md). "
        "Empty: batches are copied unchanged.",
        type="list",
        text="",
        elsewhere=True,
        repr=False,
    )
    fencing: Fencing = own(
        Fencing.TRANSACTIONAL,
        "Fencing of writers of earlier runs: `transactional` lets the broker reject them; `none` is for targets that "
        "do not allow transactional ids.",
    )
    old_records_in_transactions: bool = own(
        False,
        "Records older than half of the target's `producer.id.expiration.ms` (default one day) are written in "
        "transactions. Brokers since Kafka 3.6 then reject an overtaken run even if its producer has expired. Each "
        "transaction takes one offset of a partition. See [reliability.md](reliability.md).",
    )
    run_lease_seconds: float = own(
        30.0,
        "Lease of the run lock in seconds: another run may take over if the lock was not renewed for this time.",
        minimum=3,
    )
    ledger_history_days: int = own(
        90,
        "Retention of details of each run and partition in the ledger, in days. Totals of older runs and the last "
        "commit of each partition are kept. 0: unlimited.",
        minimum=0,
    )
    existing_target: ExistingTarget = own(
        ExistingTarget.FAIL,
        "First start of a partition whose target already contains records: `fail`, or `append` after them.",
        name="mirror.target.existing",
    )
    failback: bool = own(
        False,
        "Marks a failback flow: it copies only topics whose producers a cutover has moved to its source, so both "
        "directions may use the same topic names without a loop.",
    )
    airflow_pool: str | None = own(
        None,
        "Airflow pool for the Spark jobs of the flow, to limit the number of parallel jobs. The pool must exist. "
        "Empty: Airflow's default pool.",
        text="",
        read=_or_none,
    )
    airflow_execution: AirflowExecution = own(
        AirflowExecution.IN_PROCESS,
        "`in-process`: this package is installed in Airflow's environment (Airflow 3.2 or 3.3). `external`: it is "
        "not, and the DAG file of `mirror airflow dag-file` runs the tasks by the program `mirror` of another "
        "environment.",
    )
    airflow_deadline_seconds: float = own(
        0.0,
        "Deadline of a DAG run of the flow in seconds after it was queued; a later end raises an alert. 0: none.",
        minimum=0,
    )
    airflow_deferrable: bool = own(
        False,
        "Defers the task `replicate` while Spark copies: it then needs no worker slot. Needs a Spark Connect server, "
        "a driver host next to each worker, and a triggerer.",
    )
    first_start: FirstStart | None = own(
        None,
        "Start of a partition that was never copied: `earliest`, `latest`, `offset 4711`, or a time such as "
        "`2026-01-31T00:00:00Z` (UTC if it has no zone). Empty: `auto.offset.reset` of the source's consumer. "
        "`latest` passes over what is there when the flow first sees a topic; topics that are created after its last "
        "run are copied from their beginning.",
        text="",
        read=parse_first_start,
    )
    topic_first_starts: tuple[TopicFirstStart, ...] = own(
        (),
        "Start per topic, overrides `mirror.first.start`: `audit=latest, pay-.*=2026-01-31T00:00:00Z` with Java "
        "regexes for whole names; the first match is used.",
        name="mirror.first.start.topics",
        read=parse_topic_first_starts,
    )
    quarantine_topic: str = own("", "Quarantine topic on the target. Empty: `mm2-quarantine.<source>.internal`.")
    group_translation: GroupTranslation = own(
        GroupTranslation.EXACT,
        "Translation of group offsets, in checkpoints and for `sync.group.offsets.enabled`: `exact` uses the offset "
        "map, without duplicates on failover, and MM2's rule where MM2 has copied; `mm2` uses MM2's rule.",
    )
    group_metadata: GroupMetadata = own(
        GroupMetadata.COPY,
        "Metadata of committed offsets: `copy`, as MM2, or `drop`, for clients that store offsets in it (parallel "
        "consumers): these are wrong on the target.",
    )
    group_uncommitted: UncommittedPartitions = own(
        UncommittedPartitions.NONE,
        "Partitions with records in which a group has no offset, although it has one in other partitions of the "
        "topic: `none` commits nothing and reports them; `earliest` commits the target's log start offset.",
    )
    spark_connection: str = own(
        "spark_default",
        "Airflow connection of the Spark master, or of a Spark Connect server (type `spark_connect`).",
    )
    config_rules: ConfigRules = Field(default_factory=ConfigRules)
    acl_rules: AclRules = Field(default_factory=AclRules)
    #: `<source>.mirror.rate.limit.read.bytes`: bytes that all flows together read from the source per second; 0: no
    #: limit.
    source_rate_limit_read_bytes: int = 0
    #: `<target>.mirror.rate.limit.write.bytes`: bytes that all flows together write to the target per second; 0: no
    #: limit.
    target_rate_limit_write_bytes: int = 0
    #: The file disables the flow in the other direction (`enabled=false`); without the key this is False.
    opposite_ended: bool = False
    #: Not from the file: hand-overs of cutovers, from `ledger.handovers`.
    handovers: Handovers = NO_HANDOVERS

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


class Provenance(Frozen):
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


class MirrorConfig(Frozen):
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
