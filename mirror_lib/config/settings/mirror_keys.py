"""The project's own settings, all beginning `mirror.`: their definitions and conversion to model values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from typing import Any

from pydantic import TypeAdapter

from mirror_lib.config.copy_settings import CopySettings, PoisonPolicy
from mirror_lib.config.model import (
    AirflowExecution,
    ExistingTarget,
    Fencing,
    GroupMetadata,
    GroupTranslation,
    Rename,
    UncommittedPartitions,
)
from mirror_lib.config.settings.definition import BOOLEAN, DOUBLE, INT, LIST, LONG, STRING, Definition, Scope
from mirror_lib.config.settings.rate_keys import CLUSTER_KEYS, RATE_FLOW_KEYS
from mirror_lib.config.settings.sync_keys import SYNC_KEYS

PREFIX = "mirror."
LEDGER_URL = "mirror.ledger.url"

_SINCE = "own"
_MIB = 1024 * 1024


def _bytes(name: str, default: int, minimum: int, meaning: str) -> Definition:
    # Kafka's sizes are 32-bit integers, and no request may be larger.
    return Definition(name, LONG, str(default), Scope.FLOW, _SINCE, meaning, minimum=minimum, maximum=2**31 - 1)


FLOW_KEYS: tuple[Definition, ...] = (
    Definition(
        "mirror.schedule",
        STRING,
        "",
        Scope.FLOW,
        _SINCE,
        "Schedule of the flow's DAG: a cron expression with five fields, a preset such as `@hourly`, or an interval "
        "such as `30s`, `5m`, `2h`, `1d`. `on-new-records`: a run starts when the source "
        "has new records. Empty: manual runs only.",
    ),
    Definition(
        "mirror.schedule.longest",
        STRING,
        "10m",
        Scope.FLOW,
        _SINCE,
        "With `mirror.schedule = on-new-records`: interval of runs that start without new records, for the sync steps "
        "and heartbeats; an interval such as `10m`.",
    ),
    Definition(
        "mirror.verify.schedule",
        STRING,
        "",
        Scope.FLOW,
        _SINCE,
        "Schedule of the DAG that compares the target with the source, in the format of `mirror.schedule`; each run "
        "compares the records since the last one. Empty: manual runs only.",
    ),
    Definition(
        "mirror.run.max.seconds",
        DOUBLE,
        "0",
        Scope.FLOW,
        _SINCE,
        "Time budget of a run in seconds: it repeats rounds until it has caught up or the budget is used up. 0: one "
        "round.",
        minimum=0,
    ),
    Definition(
        "mirror.run.poll.seconds",
        DOUBLE,
        "0",
        Scope.FLOW,
        _SINCE,
        "Poll interval in seconds after a run has caught up, until `mirror.run.max.seconds` are used up. 0: the run "
        "ends when it has caught up.",
        minimum=0,
    ),
    Definition(
        "mirror.run.longest.seconds",
        DOUBLE,
        "43200",
        Scope.FLOW,
        _SINCE,
        "A run that copies a large backlog ends about this long after its start, earlier attempts of the same DAG run "
        "included, and succeeds; the next run continues. "
        "Groups are translated in between. A DAG run may take twelve hours more before Airflow ends it. 0: no limit, "
        "also none of the DAG run.",
        minimum=0,
    ),
    Definition(
        "mirror.spark.executor.wait.seconds",
        DOUBLE,
        "600",
        Scope.FLOW,
        _SINCE,
        "Maximum time until Spark gives a copy, a verification, a backfill or a preview of transforms its first "
        "executor; then the job fails with `no-executors`. Not with a local master or Spark Connect. 0: no limit.",
        minimum=0,
    ),
    Definition(
        "mirror.run.round.seconds",
        DOUBLE,
        "1",
        Scope.FLOW,
        _SINCE,
        "Minimum interval between the starts of rounds of a run in seconds, from the third round on; new records "
        "arrive within about twice this time. A lower value costs more CPU; after a longer round the next one "
        "starts at once.",
        minimum=0,
        maximum=3600,
    ),
    _bytes(
        "mirror.task.memory.bytes",
        96 * _MIB,
        16 * _MIB,
        "Maximum number of record bytes in one task: requested, or read and not yet acknowledged by the target.",
    ),
    Definition(
        "mirror.retry.max.seconds",
        DOUBLE,
        "120",
        Scope.FLOW,
        _SINCE,
        "Maximum retry time for transient errors (leader change, broker restart, timeout), in seconds; then the "
        "partition fails for this run.",
        minimum=0,
    ),
    _bytes(
        "mirror.batch.passthrough.min.bytes",
        16 * 1024,
        0,
        "Record batches of at least this size are forwarded unchanged; smaller ones are combined.",
    ),
    _bytes("mirror.batch.max.bytes", 512 * 1024, 1024, "Maximum size of combined batches."),
    _bytes("mirror.fetch.max.bytes", 8 * _MIB, 1024, "Maximum number of bytes per fetch request."),
    _bytes(
        "mirror.fetch.partition.max.bytes", 4 * _MIB, 1024, "Maximum number of bytes per partition in a fetch request."
    ),
    Definition(
        "mirror.produce.max.in.flight",
        INT,
        "5",
        Scope.FLOW,
        _SINCE,
        "Maximum number of in-flight produce requests per connection; brokers keep the order of at most 5.",
        minimum=1,
        maximum=5,
    ),
    Definition(
        "mirror.connections.per.broker",
        INT,
        "0",
        Scope.FLOW,
        _SINCE,
        "Number of connections for records from a task to a broker. 0: derived from the round-trip time: one per 10 "
        "ms, at least 2 for all tasks of a job together, at most 16. At 10 ms and more, fetch requests also ask for "
        "as much as the task's memory allows, and batches are combined up to 1 MiB.",
        minimum=0,
        maximum=64,
    ),
    Definition(
        "mirror.topics.rename",
        LIST,
        "",
        Scope.FLOW,
        _SINCE,
        "Renames single topics: `orders:sales, old:new`. Applied before the regex and the replication policy.",
    ),
    Definition(
        "mirror.topics.rename.regex",
        STRING,
        None,
        Scope.FLOW,
        _SINCE,
        "Renames every topic whose whole name matches this Java regex.",
    ),
    Definition(
        "mirror.topics.rename.replacement",
        STRING,
        None,
        Scope.FLOW,
        _SINCE,
        "New name for topics that match `mirror.topics.rename.regex`; `$1` is its first group.",
    ),
    Definition(
        "mirror.topics.merge.enabled",
        BOOLEAN,
        "false",
        Scope.FLOW,
        _SINCE,
        "Allows several source topics with the same number of partitions to be copied to one target topic.",
    ),
    Definition(
        "mirror.transforms",
        LIST,
        "",
        Scope.FLOW,
        _SINCE,
        "Names of the transforms, in order; each has its own settings, see below and "
        "[transforms.md](transforms.md). Empty: batches are copied unchanged.",
    ),
    Definition(
        "mirror.fencing",
        STRING,
        Fencing.TRANSACTIONAL,
        Scope.FLOW,
        _SINCE,
        "Fencing of writers of earlier runs: `transactional` lets the broker reject them; `none` is for targets "
        "that do not allow transactional ids.",
        choices=tuple(Fencing),
    ),
    Definition(
        "mirror.old.records.in.transactions",
        BOOLEAN,
        "false",
        Scope.FLOW,
        _SINCE,
        "Records older than half of the target's `producer.id.expiration.ms` (default one day) are written in "
        "transactions. Brokers since Kafka 3.6 then reject an overtaken run even if its producer has expired. Each "
        "transaction takes one offset of a partition. See [reliability.md](reliability.md).",
    ),
    Definition(
        "mirror.run.lease.seconds",
        DOUBLE,
        "30",
        Scope.FLOW,
        _SINCE,
        "Lease of the run lock in seconds: another run may take over if the lock was not renewed for this time.",
        minimum=3,
    ),
    Definition(
        "mirror.ledger.history.days",
        INT,
        "90",
        Scope.FLOW,
        _SINCE,
        "Retention of details of each run and partition in the ledger, in days. Totals of older runs and the last "
        "commit of each partition are kept. 0: unlimited.",
        minimum=0,
    ),
    Definition(
        "mirror.target.existing",
        STRING,
        ExistingTarget.FAIL,
        Scope.FLOW,
        _SINCE,
        "First start of a partition whose target already contains records: `fail`, or `append` after them.",
        choices=tuple(ExistingTarget),
    ),
    Definition(
        "mirror.failback",
        BOOLEAN,
        "false",
        Scope.FLOW,
        _SINCE,
        "Marks a failback flow: it copies only topics whose producers a cutover has moved to its source, so both "
        "directions may use the same topic names without a loop.",
    ),
    Definition(
        "mirror.airflow.pool",
        STRING,
        "",
        Scope.FLOW,
        _SINCE,
        "Airflow pool for the Spark jobs of the flow, to limit the number of parallel jobs. The pool must exist. "
        "Empty: Airflow's default pool.",
    ),
    Definition(
        "mirror.airflow.execution",
        STRING,
        AirflowExecution.IN_PROCESS,
        Scope.FLOW,
        _SINCE,
        "`in-process`: this package is installed in Airflow's environment (Airflow 3.2 or 3.3). `external`: it is "
        "not, and the DAG file of `mirror airflow dag-file` runs the tasks by the program `mirror` of another "
        "environment.",
        choices=tuple(AirflowExecution),
    ),
    Definition(
        "mirror.airflow.deadline.seconds",
        DOUBLE,
        "0",
        Scope.FLOW,
        _SINCE,
        "Deadline of a DAG run of the flow in seconds after it was queued; a later end raises an alert. 0: none.",
        minimum=0,
    ),
    Definition(
        "mirror.airflow.deferrable",
        BOOLEAN,
        "false",
        Scope.FLOW,
        _SINCE,
        "Defers the task `replicate` while Spark copies: it then needs no worker slot. Needs a Spark Connect server, a "
        "driver host next to each worker, and a triggerer.",
    ),
    Definition(
        "mirror.first.start",
        STRING,
        "",
        Scope.FLOW,
        _SINCE,
        "Start of a partition that was never copied: `earliest`, `latest`, `offset 4711`, or a time such as "
        "`2026-01-31T00:00:00Z` (UTC if it has no zone). Empty: `auto.offset.reset` of the source's consumer. "
        "`latest` passes over what is there when the flow first sees a topic; topics that are created after its last "
        "run are copied from their beginning.",
    ),
    Definition(
        "mirror.first.start.topics",
        LIST,
        "",
        Scope.FLOW,
        _SINCE,
        "Start per topic, overrides `mirror.first.start`: `audit=latest, pay-.*=2026-01-31T00:00:00Z` with Java "
        "regexes for whole names; the first match is used.",
    ),
    Definition(
        "mirror.poison.policy",
        STRING,
        PoisonPolicy.FAIL,
        Scope.FLOW,
        _SINCE,
        "Handling of poison records (too large for the target, rejected timestamp, damaged batch): `fail` stops the "
        "partition at the record, `quarantine` writes it to the quarantine topic, `skip` skips it and stores that "
        "in the ledger.",
        choices=tuple(PoisonPolicy),
    ),
    Definition(
        "mirror.quarantine.topic",
        STRING,
        "",
        Scope.FLOW,
        _SINCE,
        "Quarantine topic on the target. Empty: `mm2-quarantine.<source>.internal`.",
    ),
    Definition(
        "mirror.group.translation",
        STRING,
        GroupTranslation.EXACT,
        Scope.FLOW,
        _SINCE,
        "Translation of group offsets, in checkpoints and for `sync.group.offsets.enabled`: `exact` uses the offset "
        "map, without duplicates on failover, and MM2's rule where MM2 has copied; `mm2` uses MM2's rule.",
        choices=tuple(GroupTranslation),
    ),
    Definition(
        "mirror.group.metadata",
        STRING,
        GroupMetadata.COPY,
        Scope.FLOW,
        _SINCE,
        "Metadata of committed offsets: `copy`, as MM2, or `drop`, for clients that store offsets in it (parallel "
        "consumers): these are wrong on the target.",
        choices=tuple(GroupMetadata),
    ),
    Definition(
        "mirror.group.uncommitted",
        STRING,
        UncommittedPartitions.NONE,
        Scope.FLOW,
        _SINCE,
        "Partitions with records in which a group has no offset, although it has one in other partitions of the topic: "
        "`none` commits nothing and reports them; `earliest` commits the target's log start offset.",
        choices=tuple(UncommittedPartitions),
    ),
    Definition(
        "mirror.spark.connection",
        STRING,
        "spark_default",
        Scope.FLOW,
        _SINCE,
        "Airflow connection of the Spark master, or of a Spark Connect server (type `spark_connect`).",
    ),
    *RATE_FLOW_KEYS,
    *SYNC_KEYS,
)

TOP_KEYS = (
    Definition(
        LEDGER_URL,
        STRING,
        None,
        Scope.TOP,
        _SINCE,
        "SQL database of the run ledger as an SQLAlchemy URL of SQLite or PostgreSQL; default: a SQLite file in the "
        "state folder.",
    ),
)

OWN_BY_NAME = {definition.name: definition for definition in (*FLOW_KEYS, *TOP_KEYS, *CLUSTER_KEYS)}

#: The field of `CopySettings` that is set from the data producer, not from a `mirror.*` key.
REQUEST_MAX_BYTES = "request_max_bytes"

_COPY_SETTINGS = TypeAdapter(CopySettings)
#: The text of an effective setting, None when it has neither a value nor a default.
Lookup = Callable[[str], str | None]


def copy_settings(lookup: Lookup) -> CopySettings:
    """Return the values of the `mirror.*` keys about copying.

    Raises:
        ValueError: a value is not valid.
    """
    values: dict[str, Any] = {}
    for field in {each.name for each in fields(CopySettings)} - {REQUEST_MAX_BYTES}:
        name = PREFIX + field.replace("_", ".")
        text = lookup(name)
        if text is not None:
            values[field] = OWN_BY_NAME[name].parse(text)
    return _COPY_SETTINGS.validate_python(values)


def rename(lookup: Lookup) -> Rename:
    """Return the values of the `mirror.topics.*` keys.

    Raises:
        ValueError: a value is not valid.
    """
    return Rename(
        explicit=parse_rename_list(lookup("mirror.topics.rename") or ""),
        pattern=(lookup("mirror.topics.rename.regex") or "").strip() or None,
        replacement=_strip(lookup("mirror.topics.rename.replacement")),
        merge=bool(OWN_BY_NAME["mirror.topics.merge.enabled"].parse(lookup("mirror.topics.merge.enabled") or "false")),
    )


def _strip(text: str | None) -> str | None:
    return None if text is None else text.strip()


def parse_rename_list(text: str) -> Mapping[str, str]:
    """Parse `orders:sales, old:new` as a map from source to target topic.

    Raises:
        ValueError: a member is not a pair, or a source topic appears twice; the message completes "must be".
    """
    pairs: dict[str, str] = {}
    for source, target in _pairs(text):
        if source in pairs:
            raise ValueError(f"a list with each source topic once; {source} is in it twice")
        pairs[source] = target
    return pairs


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for member in text.split(","):
        if not member.strip():
            continue
        source, colon, target = (part.strip() for part in member.partition(":"))
        if not (colon and source and target) or ":" in target:
            raise ValueError(f"a list of source:target pairs such as orders:sales; {member.strip()!r} is not valid")
        yield source, target
