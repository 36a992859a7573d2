"""The states of a flow's backfills in the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mirror_lib.config.model import FlowConfig
from mirror_lib.copy.run_lock import LockHolder
from mirror_lib.errors import RunDiedError
from mirror_lib.features.backfill.define import every_backfill
from mirror_lib.features.backfill.model import Backfill
from mirror_lib.features.backfill.states import STATES, Known, State, state_of
from mirror_lib.ledger.rows import RunRow, RunState
from mirror_lib.ledger.store import Ledger
from mirror_lib.planning.backfills import again
from mirror_lib.topology.names import TopicPartition


@dataclass(frozen=True, slots=True)
class Situation:
    """A backfill at one moment."""

    backfill: Backfill
    state: State
    #: Source offsets that are not copied according to the ledger; a run that died may have copied more.
    left: int
    #: The last run.
    run: RunRow | None

    @property
    def what(self) -> str:
        """Description of its state."""
        error = self._error
        return str(error["what"]) if self.state is State.STOPPED and error else STATES[self.state].description

    @property
    def do(self) -> str:
        """Operator action; empty if nothing remains to do."""
        error = self._error
        if self.state is State.STOPPED and error and error.get("action"):
            return str(error["action"])
        return STATES[self.state].do.format(again=again(self.backfill.flow, self.backfill.name))

    @property
    def _error(self) -> Mapping[str, Any] | None:
        return None if self.run is None else self.run.error

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        return {
            "name": self.backfill.name,
            "state": self.state.value,
            "what": self.what,
            "action": self.do,
            "offsets": self.left,
            "request": self.backfill.request.to_dict(),
            "last_run": None if self.run is None else self.run.id,
        }


def situations_of(flow: FlowConfig, ledger: Ledger) -> list[Situation]:
    """The backfills of a flow with their states, newest first; only the ledger is queried."""
    found = every_backfill(flow, ledger)
    # Read the locks first: a run records its end before it releases its lock.
    held = {name: LockHolder.parse(row.holder) for name, row in ledger.lock_holders().items()}
    return [_situation(each, ledger, str(each.flow) in held and not _is_dead(held[str(each.flow)])) for each in found]


def _is_dead(holder: LockHolder | None) -> bool:
    return holder is not None and holder.known_dead


def _situation(backfill: Backfill, ledger: Ledger, carried: bool) -> Situation:
    run = next(iter(ledger.runs(str(backfill.flow), 1)), None)
    copied = {TopicPartition(row.topic, row.partition): row.offset + 1 for row in ledger.positions(str(backfill.flow))}
    left = sum(max(each.following - max(copied.get(each.source, 0), each.first), 0) for each in backfill.ranges)
    state, reason = None, None
    if run is not None:
        state, reason = run.state, (run.error or {}).get("reason")
        if run.state == RunState.RUNNING and not carried:
            reason = RunDiedError.reason
    known = Known(carried=carried, run_state=state, reason=reason, left=left > 0)
    return Situation(backfill, state_of(known), left, run)
