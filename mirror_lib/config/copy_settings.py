"""The settings that a copy task needs. Without pydantic: workers import this."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class PoisonPolicy(StrEnum):
    """What happens to a record or batch that cannot be copied."""

    FAIL = "fail"
    QUARANTINE = "quarantine"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class CopySettings:
    """How records are copied; the project's own keys, see docs/configuration.md for each."""

    run_max_seconds: float = 0.0
    run_poll_seconds: float = 0.0
    run_round_seconds: float = 1.0
    run_longest_seconds: float = 43_200.0
    spark_executor_wait_seconds: float = 600.0
    task_memory_bytes: int = 96 * 1024 * 1024
    retry_max_seconds: float = 120.0
    batch_passthrough_min_bytes: int = 16 * 1024
    batch_max_bytes: int = 512 * 1024
    fetch_max_bytes: int = 8 * 1024 * 1024
    fetch_partition_max_bytes: int = 4 * 1024 * 1024
    produce_max_in_flight: int = 5
    #: `max.request.size` of the data producer: bytes of the batches in a request to the target; None: not set.
    request_max_bytes: int | None = None
    #: For data, of a task, in each direction; 0: by the round-trip time to the broker.
    connections_per_broker: int = 0
    #: Bytes that all tasks of the flow read from the source in a second; 0: no limit.
    rate_limit_bytes: int = 0
    poison_policy: PoisonPolicy = PoisonPolicy.FAIL
