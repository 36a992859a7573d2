"""The project's own settings, all beginning `mirror.`: their definitions and conversion to model values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from mirror_lib.config.model import CopySettings, ExistingTarget, Fencing, GroupTranslation, PoisonPolicy, Rename
from mirror_lib.config.settings.definitions import BOOLEAN, DOUBLE, INT, LIST, LONG, STRING, Definition, Scope
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
        "When the flow's DAG runs: a cron expression of five fields, a preset such as `@hourly`, or an interval such "
        "as `30s`, `5m`, `2h`, `1d`. Empty: only by hand.",
    ),
    Definition(
        "mirror.verify.schedule",
        STRING,
        "",
        Scope.FLOW,
        _SINCE,
        "When the DAG runs that compares the target with the source, written like `mirror.schedule`; it compares what "
        "came since it last did. Empty: only by hand.",
    ),
    Definition(
        "mirror.run.max.seconds",
        DOUBLE,
        "0",
        Scope.FLOW,
        _SINCE,
        "Time budget of a run: it makes further rounds until it has caught up or this many seconds have passed. "
        "0 makes one round.",
        minimum=0,
    ),
    Definition(
        "mirror.run.poll.seconds",
        DOUBLE,
        "0",
        Scope.FLOW,
        _SINCE,
        "A run that has caught up looks for new records again after so many seconds, until `mirror.run.max.seconds` "
        "are used up. 0: it ends when it has caught up.",
        minimum=0,
    ),
    Definition(
        "mirror.run.round.seconds",
        DOUBLE,
        "1",
        Scope.FLOW,
        _SINCE,
        "Rounds of a run begin at least so far apart, from the third on, so that records that are being written arrive "
        "within about twice this time. Less costs more CPU; a round that takes longer is followed at once.",
        minimum=0,
        maximum=3600,
    ),
    _bytes(
        "mirror.task.memory.bytes",
        96 * _MIB,
        16 * _MIB,
        "Record bytes that one task may hold: asked for, or read and not yet acknowledged by the target.",
    ),
    Definition(
        "mirror.retry.max.seconds",
        DOUBLE,
        "120",
        Scope.FLOW,
        _SINCE,
        "How long a fault that usually passes (leader change, broker restart, timeout) is retried before the partition "
        "is given up for this run.",
        minimum=0,
    ),
    _bytes(
        "mirror.batch.passthrough.min.bytes",
        16 * 1024,
        0,
        "Record batches of at least this size are sent on as they are; smaller ones are put together into larger ones.",
    ),
    _bytes("mirror.batch.max.bytes", 512 * 1024, 1024, "Size up to which small batches are put together."),
    _bytes("mirror.fetch.max.bytes", 8 * _MIB, 1024, "Most bytes that one fetch request asks of a broker."),
    _bytes("mirror.fetch.partition.max.bytes", 4 * _MIB, 1024, "Most bytes of one partition in a fetch request."),
    Definition(
        "mirror.produce.max.in.flight",
        INT,
        "5",
        Scope.FLOW,
        _SINCE,
        "Produce requests under way on one connection at the same time; brokers keep order for at most 5.",
        minimum=1,
        maximum=5,
    ),
    Definition(
        "mirror.connections.per.broker",
        INT,
        "0",
        Scope.FLOW,
        _SINCE,
        "Connections for records that a task opens to a broker. 0 decides by the round trip: one for each 10 ms of it, "
        "at least 2 for all tasks of a job together, and at most 16. Over 10 ms and more fetch requests also ask for "
        "as much as the task's memory allows, and batches are put together up to 1 MiB.",
        minimum=0,
        maximum=64,
    ),
    Definition(
        "mirror.topics.rename",
        LIST,
        "",
        Scope.FLOW,
        _SINCE,
        "Renames single topics: `orders:sales, old:new`. Goes before the regex and the replication policy.",
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
        "The new name for `mirror.topics.rename.regex`; `$1` stands for its first group.",
    ),
    Definition(
        "mirror.topics.merge.enabled",
        BOOLEAN,
        "false",
        Scope.FLOW,
        _SINCE,
        "Allows several source topics with the same number of partitions to share one target topic.",
    ),
    Definition(
        "mirror.transforms",
        LIST,
        "",
        Scope.FLOW,
        _SINCE,
        "Names of the transforms that records go through, in this order; each has settings of its own, see below and "
        "[transforms.md](transforms.md). Empty: batches are copied as they are.",
    ),
    Definition(
        "mirror.fencing",
        STRING,
        Fencing.TRANSACTIONAL,
        Scope.FLOW,
        _SINCE,
        "How writers of earlier runs that may still live are kept from the target: `transactional` lets the broker "
        "refuse them; `none` is for targets that refuse transactional ids.",
        choices=tuple(Fencing),
    ),
    Definition(
        "mirror.old.records.in.transactions",
        BOOLEAN,
        "false",
        Scope.FLOW,
        _SINCE,
        "Records older than half of the target's `producer.id.expiration.ms` (a day) are written in transactions. Then "
        "brokers since Kafka 3.6 refuse a run that was overtaken also where they have forgotten its producer. Each "
        "transaction takes one offset of a partition. See [reliability.md](reliability.md).",
    ),
    Definition(
        "mirror.run.lease.seconds",
        DOUBLE,
        "30",
        Scope.FLOW,
        _SINCE,
        "A run that has not said for so long that it lives may be succeeded by another one.",
        minimum=3,
    ),
    Definition(
        "mirror.ledger.history.days",
        INT,
        "90",
        Scope.FLOW,
        _SINCE,
        "For how many days the ledger keeps what each run did in each partition. Of older runs the totals stay, and of "
        "each partition what was committed last. 0: for ever.",
        minimum=0,
    ),
    Definition(
        "mirror.target.existing",
        STRING,
        ExistingTarget.FAIL,
        Scope.FLOW,
        _SINCE,
        "What the first start of a partition does when its target holds records already: `fail`, or `append` behind "
        "them.",
        choices=tuple(ExistingTarget),
    ),
    Definition(
        "mirror.way.back",
        BOOLEAN,
        "false",
        Scope.FLOW,
        _SINCE,
        "The flow leads back: it copies only topics whose writers a cutover has moved to its source. So both "
        "directions may keep the topics' names without copying in a circle.",
    ),
    Definition(
        "mirror.airflow.pool",
        STRING,
        "",
        Scope.FLOW,
        _SINCE,
        "The Airflow pool whose slots the Spark jobs of the flow take, so that flows share clusters with measure. The "
        "pool must exist. Empty: Airflow's default pool.",
    ),
    Definition(
        "mirror.airflow.deadline.seconds",
        DOUBLE,
        "0",
        Scope.FLOW,
        _SINCE,
        "A run of the flow's DAG that has not ended so long after it was queued raises a deadline alert. 0: none.",
        minimum=0,
    ),
    Definition(
        "mirror.first.start",
        STRING,
        "",
        Scope.FLOW,
        _SINCE,
        "Where a partition that was never copied begins: `earliest`, `latest`, `offset 4711`, or a time such as "
        "`2026-01-31T00:00:00Z`. Empty: `auto.offset.reset` of the source's consumer.",
    ),
    Definition(
        "mirror.first.start.topics",
        LIST,
        "",
        Scope.FLOW,
        _SINCE,
        "The same for single topics: `audit=latest, pay-.*=2026-01-31T00:00:00Z` with Java regexes for whole names; "
        "the first that matches counts.",
    ),
    Definition(
        "mirror.poison.policy",
        STRING,
        PoisonPolicy.FAIL,
        Scope.FLOW,
        _SINCE,
        "What happens to a record that cannot be copied (too large for the target, a timestamp that it refuses, a "
        "damaged batch): `fail` stops the partition there, `quarantine` puts it into the quarantine topic, `skip` "
        "leaves it out and notes it in the ledger.",
        choices=tuple(PoisonPolicy),
    ),
    Definition(
        "mirror.quarantine.topic",
        STRING,
        "",
        Scope.FLOW,
        _SINCE,
        "The topic on the target for what cannot be copied. Empty: `mm2-quarantine.<source>.internal`.",
    ),
    Definition(
        "mirror.group.translation",
        STRING,
        GroupTranslation.EXACT,
        Scope.FLOW,
        _SINCE,
        "Where `sync.group.offsets.enabled` lets groups go on on the target: `exact` by the offset map, so that they "
        "read nothing again, or `mm2` by its checkpoints. The checkpoints topic keeps MM2's rule either way.",
        choices=tuple(GroupTranslation),
    ),
    Definition(
        "mirror.spark.connection",
        STRING,
        "spark_default",
        Scope.FLOW,
        _SINCE,
        "The Airflow connection that names the Spark master, or a Spark Connect server (type `spark_connect`).",
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
        "The SQL database of the run ledger as an SQLAlchemy URL; without it a SQLite file in the state folder.",
    ),
)

OWN_BY_NAME = {definition.name: definition for definition in (*FLOW_KEYS, *TOP_KEYS, *CLUSTER_KEYS)}

#: The field of `CopySettings` that is set from the data producer, not from a `mirror.*` key.
REQUEST_MAX_BYTES = "request_max_bytes"

#: The text of an effective setting, None when it has neither a value nor a default.
Lookup = Callable[[str], str | None]


def copy_settings(lookup: Lookup) -> CopySettings:
    """Return the values of the `mirror.*` keys about copying.

    Raises:
        ValueError: a value is not valid.
    """
    values = {}
    for field in CopySettings.model_fields.keys() - {REQUEST_MAX_BYTES}:
        name = PREFIX + field.replace("_", ".")
        text = lookup(name)
        if text is not None:
            values[field] = OWN_BY_NAME[name].parse(text)
    return CopySettings.model_validate(values)


def rename(lookup: Lookup) -> Rename:
    """Return the values of the `mirror.topics.*` keys.

    Raises:
        ValueError: a value is not valid.
    """
    return Rename(
        explicit=parse_rename_list(lookup("mirror.topics.rename") or ""),
        pattern=(lookup("mirror.topics.rename.regex") or "").strip() or None,
        replacement=_stripped(lookup("mirror.topics.rename.replacement")),
        merge=bool(OWN_BY_NAME["mirror.topics.merge.enabled"].parse(lookup("mirror.topics.merge.enabled") or "false")),
    )


def _stripped(text: str | None) -> str | None:
    return None if text is None else text.strip()


def parse_rename_list(text: str) -> Mapping[str, str]:
    """Parse `orders:sales, old:new` as a map from source to target topic.

    Raises:
        ValueError: a member is not a pair, or a source topic appears twice; the message completes "must be".
    """
    pairs: dict[str, str] = {}
    for source, target in _pairs(text):
        if source in pairs:
            raise ValueError(f"a list that names every source topic once; {source} is there twice")
        pairs[source] = target
    return pairs


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for member in text.split(","):
        if not member.strip():
            continue
        source, colon, target = (part.strip() for part in member.partition(":"))
        if not (colon and source and target) or ":" in target:
            raise ValueError(f"a list of source:target pairs such as orders:sales; {member.strip()!r} is none")
        yield source, target
