"""The speed at which records are copied to the target, from measurements. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mirror_lib.ledger.queries.copy_rounds import CopiedRound

#: A smaller and shorter round shows the overhead of a round, not the copy speed.
_MEASURED_SECONDS, _MEASURED_BYTES = 2.0, 16_000_000


@dataclass(frozen=True, slots=True)
class CopySpeed:
    """The copy speed of a flow."""

    bytes_per_second: float
    records_per_second: float
    #: The best speed of a single partition: it has one writer, regardless of the number of tasks.
    partition_bytes_per_second: float
    partition_records_per_second: float
    #: All rounds were too small to measure: the real speed may be much higher.
    at_least: bool


def copy_speed(rounds: Sequence[CopiedRound]) -> CopySpeed | None:
    """The best of some recent rounds: others had less to do, or shared the machine. None if nothing was copied."""
    copied = [each for each in rounds if each.seconds > 0 and each.records > 0]
    measured = [each for each in copied if each.seconds >= _MEASURED_SECONDS or each.bytes >= _MEASURED_BYTES]
    seen = measured or copied
    if not seen:
        return None
    return CopySpeed(
        bytes_per_second=max(each.bytes / each.seconds for each in seen),
        records_per_second=max(each.records / each.seconds for each in seen),
        partition_bytes_per_second=max(each.partition_bytes_per_second for each in seen),
        partition_records_per_second=max(each.partition_records_per_second for each in seen),
        at_least=not measured,
    )
