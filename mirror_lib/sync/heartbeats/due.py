"""Which pairs of clusters emit a heartbeat now (`emit.heartbeats.interval.seconds`), by the times in the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from mirror_lib.config.model import FlowConfig
from mirror_lib.ledger.store import Ledger
from mirror_lib.sync.heartbeats.flow import EmittedHeartbeat
from mirror_lib.sync.intervals import Interval
from mirror_lib.topology.names import FlowId

#: Name of the step in the ledger's times of sync steps.
_STEP = "heartbeats emitted"


def due_pairs(pairs: Iterable[FlowConfig], ledger: Ledger, now: datetime) -> tuple[FlowConfig, ...]:
    """Return the pairs whose interval has passed since their last heartbeat, whichever DAG or command emitted it."""
    return tuple(pair for pair in pairs if _why_not(pair, ledger, now) is None)


def note_emitted(emitted: Sequence[EmittedHeartbeat], ledger: Ledger, now: datetime) -> None:
    """Store when heartbeats were emitted; those that failed are due again at once.

    Args:
        now: when they were due.
    """
    done: list[FlowId] = [each.pair for each in emitted if each.error is None]
    for pair in done:
        ledger.note_sync(str(pair), _STEP, now)


def _why_not(pair: FlowConfig, ledger: Ledger, now: datetime) -> str | None:
    seconds = pair.emit_heartbeats_interval_seconds
    interval = Interval("emit.heartbeats.enabled", True, "emit.heartbeats.interval.seconds", max(seconds, 0))
    return interval.why_not(ledger.last_sync(str(pair.flow), _STEP), now)
