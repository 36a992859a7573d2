"""The settings that a copy task needs. Without pydantic: workers import this."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from mirror_lib.config.own_key import own, own_size

_MIB = 1024 * 1024


class PoisonPolicy(StrEnum):
    """What happens to a record or batch that cannot be copied."""

    FAIL = "fail"
    QUARANTINE = "quarantine"
    SKIP = "skip"


class TargetOffsets(StrEnum):
    """Which offsets records get on the target."""

    OWN = "own"
    SAME = "same"


@dataclass(frozen=True, slots=True)
class CopySettings:
    """How records are copied, and how long a run lasts."""

    run_max_seconds: float = own(
        0.0,
        "Time budget of a run in seconds: it repeats rounds until it has caught up or the budget is used up. 0: one "
        "round.",
        minimum=0,
    )
    run_poll_seconds: float = own(
        0.0,
        "Poll interval in seconds after a run has caught up, until `mirror.run.max.seconds` are used up. 0: the run "
        "ends when it has caught up.",
        minimum=0,
    )
    run_longest_seconds: float = own(
        43_200.0,
        "A run that copies a large backlog ends about this long after its start, earlier attempts of the same DAG "
        "run included, and succeeds; the next run continues. Groups are translated in between. A DAG run may take "
        "twelve hours more before Airflow ends it. 0: no limit, also none of the DAG run.",
        minimum=0,
    )
    spark_executor_wait_seconds: float = own(
        600.0,
        "Maximum time until Spark gives a copy, a verification, a backfill or a preview of transforms its first "
        "executor; then the job fails with `no-executors`. Not with a local master or Spark Connect. 0: no limit.",
        minimum=0,
    )
    run_round_seconds: float = own(
        1.0,
        "Minimum interval between the starts of rounds of a run in seconds, from the third round on; new records "
        "arrive within about twice this time. A lower value costs more CPU; after a longer round the next one starts "
        "at once.",
        minimum=0,
        maximum=3600,
    )
    task_memory_bytes: int = own_size(
        96 * _MIB,
        16 * _MIB,
        "Maximum number of record bytes in one task: requested, or read and not yet acknowledged by the target.",
    )
    retry_max_seconds: float = own(
        120.0,
        "Maximum retry time for transient errors (leader change, broker restart, timeout), in seconds; then the "
        "partition fails for this run.",
        minimum=0,
    )
    batch_passthrough_min_bytes: int = own_size(
        16 * 1024,
        0,
        "Record batches of at least this size are forwarded unchanged; smaller ones are combined.",
    )
    batch_max_bytes: int = own_size(512 * 1024, 1024, "Maximum size of combined batches.")
    fetch_max_bytes: int = own_size(8 * _MIB, 1024, "Maximum number of bytes per fetch request.")
    fetch_partition_max_bytes: int = own_size(
        4 * _MIB,
        1024,
        "Maximum number of bytes per partition in a fetch request.",
    )
    produce_max_in_flight: int = own(
        5,
        "Maximum number of in-flight produce requests per connection; brokers keep the order of at most 5.",
        minimum=1,
        maximum=5,
    )
    connections_per_broker: int = own(
        0,
        "Number of connections for records from a task to a broker. 0: derived from the round-trip time: one per 10 "
        "ms, at least 2 for all tasks of a job together, at most 16. At 10 ms and more, fetch requests also ask for "
        "as much as the task's memory allows, and batches are combined up to 1 MiB.",
        minimum=0,
        maximum=64,
    )
    rate_limit_bytes: int = own(
        0,
        "Maximum read rate from the source in bytes/s, across all tasks of the flow. 0: unlimited.",
        minimum=0,
        type="long",
    )
    poison_policy: PoisonPolicy = own(
        PoisonPolicy.FAIL,
        "Handling of poison records (too large for the target, rejected timestamp, damaged batch): `fail` stops the "
        "partition at the record, `quarantine` writes it to the quarantine topic, `skip` skips it and stores that in "
        "the ledger.",
    )
    offsets: TargetOffsets = own(
        TargetOffsets.OWN,
        "`same`: each record gets the offset that it has at the source, or its partition stops "
        "([same-offsets.md](same-offsets.md)). `own`: offsets follow from each other without holes.",
    )
    offsets_pad_max_records: int = own(
        100_000_000,
        "With `mirror.offsets = same`: maximum number of offsets without a record that are filled at once in a "
        "partition; beyond it the partition is refused.",
        minimum=0,
        type="long",
    )
    #: `max.request.size` of the data producer: bytes of the batches in a request to the target; None: not set.
    request_max_bytes: int | None = None

    @property
    def same_offsets(self) -> bool:
        """True if each record gets the offset that it has at the source."""
        return self.offsets is TargetOffsets.SAME

    @property
    def most_holes(self) -> int | None:
        """Number of offsets without a record that are filled at once with the same offsets; None for own ones."""
        return self.offsets_pad_max_records if self.same_offsets else None
