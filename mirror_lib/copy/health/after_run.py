"""What follows a run: its flow is observed, if the feature for it is there, and the ledger forgets old rows."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from mirror_lib.config.model import FlowConfig
from mirror_lib.feature import Hook
from mirror_lib.installed_features import installed_features
from mirror_lib.ledger.observed_rows import FlowObservationRow
from mirror_lib.ledger.store import Ledger

_log = logging.getLogger(__name__)


class FlowState(Protocol):
    """What the core reads of an observed flow."""

    @property
    def flow(self) -> FlowObservationRow: ...
    def summary(self) -> dict[str, Any]:
        """The flow only, as plain data."""
        ...


def observe_after_run(flow: FlowConfig, ledger: Ledger, run_id: str | None) -> FlowState | None:
    """Store the state of a flow in the ledger, and tidy the ledger up; None without the feature that observes flows.

    Raises:
        MirrorError: a cluster cannot be reached, or the ledger cannot be used; nothing is stored then.
    """
    for observe in installed_features().at(Hook.OBSERVE):
        found: FlowState = observe(flow, ledger, run_id=run_id)
        return found
    with ledger_tidied_up(flow, ledger):
        return None


@contextmanager
def ledger_tidied_up(flow: FlowConfig, ledger: Ledger) -> Iterator[None]:
    """Close runs that have died before the work, and delete expired rows of old runs after it."""
    for dead in ledger.close_dead_runs(str(flow.flow)):
        _log.warning("Flow %s: run %s has died.", flow.flow, dead)
    yield
    if flow.ledger_history_days:
        ledger.history.forget(str(flow.flow), keep=timedelta(days=flow.ledger_history_days), now=datetime.now(UTC))
