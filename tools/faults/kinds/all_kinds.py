"""All kinds of faults, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from tools.faults.drivers.fault_points import FaultPoint
from tools.faults.kinds import broker_faults, network_faults, process_faults, restore_faults, state_faults
from tools.faults.kinds.scene import Scene


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of fault."""

    name: str
    title: str
    #: Plays the fault in a scene that the campaign then lets catch up; returns True if it hit a run while copying.
    play: Callable[[Scene], bool]
    #: True if it does not apply to clusters of one broker.
    replicated: bool = False
    #: True if it needs a PostgreSQL server.
    postgres: bool = False


KINDS: tuple[Kind, ...] = (
    Kind("worker-killed", "SIGKILL of a Python worker (executor)", process_faults.worker_killed),
    Kind("driver-killed", "SIGKILL of the driver alone", process_faults.driver_killed),
    Kind("session-killed", "SIGKILL of driver, JVM and workers", process_faults.session_killed),
    Kind(
        "killed-after-open",
        "driver killed while positions are open",
        partial(process_faults.killed_at, FaultPoint.AFTER_OPEN),
    ),
    Kind(
        "killed-before-positions",
        "driver killed between data and positions",
        partial(process_faults.killed_at, FaultPoint.BEFORE_POSITIONS),
    ),
    Kind(
        "killed-after-positions",
        "driver killed between positions and ledger",
        partial(process_faults.killed_at, FaultPoint.AFTER_POSITIONS),
    ),
    Kind(
        "killed-before-end",
        "driver killed before the end of the run is stored",
        partial(process_faults.killed_at, FaultPoint.BEFORE_END),
    ),
    Kind("two-runs", "two runs at once, one ledger (lock)", process_faults.two_runs),
    Kind("two-runs-unlocked", "two runs at once, two ledgers (no lock)", process_faults.two_runs_unlocked),
    Kind("zombie-driver", "whole session stopped, woken after its successor", process_faults.zombie_driver),
    Kind("zombie-worker", "workers stopped, woken after their successors", process_faults.zombie_worker),
    Kind("source-broker-killed", "SIGKILL and restart of a source broker", broker_faults.source_broker_killed),
    Kind("target-broker-killed", "SIGKILL and restart of a target broker", broker_faults.target_broker_killed),
    Kind("source-power-cut", "SIGKILL and restart of all source brokers", broker_faults.source_power_cut),
    Kind("target-power-cut", "SIGKILL and restart of all target brokers", broker_faults.target_power_cut),
    Kind("source-leaders-moved", "all leaders of the source move", broker_faults.source_leaders_moved, replicated=True),
    Kind("target-leaders-moved", "all leaders of the target move", broker_faults.target_leaders_moved, replicated=True),
    Kind("target-isr-too-small", "target has too few replicas in sync", broker_faults.isr_too_small, replicated=True),
    Kind("acknowledgement-lost", "produce responses dropped, connection cut", network_faults.acknowledgement_lost),
    Kind("latency", "200 ms latency to both clusters", network_faults.latency),
    Kind("connections-cut", "connections cut repeatedly", network_faults.connections_cut),
    Kind("connections-refused", "cluster unreachable for a while", network_faults.connections_refused),
    Kind("target-silent", "traffic to and from the target stops for a while", network_faults.target_silent),
    Kind("target-refuses", "target rejects records by policy", state_faults.target_refuses),
    Kind("ledger-gone", "ledger database (PostgreSQL) stopped", state_faults.ledger_gone, postgres=True),
    Kind("partitions-added", "partitions added on both sides", state_faults.partitions_added),
    Kind("topic-deleted", "a source topic deleted", state_faults.topic_deleted),
    Kind("source-restored", "source restored from a snapshot, grown to the same end", restore_faults.source_restored),
    Kind("target-restored", "target restored from a snapshot, with its positions", restore_faults.target_restored),
    Kind("ledger-restored", "ledger restored from a backup", restore_faults.ledger_restored),
)


def choose(names: Sequence[str], *, brokers: int) -> tuple[Kind, ...]:
    """Return the kinds of these names in their own order; without names, all that apply.

    Raises:
        ValueError: a name is unknown, or its fault needs clusters of three brokers.
    """
    possible = {kind.name: kind for kind in KINDS if brokers >= 3 or not kind.replicated}
    known = {kind.name for kind in KINDS}
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"unknown kind of fault: {', '.join(unknown)}. Known: {', '.join(sorted(known))}.")
    if impossible := [name for name in names if name not in possible]:
        raise ValueError(f"{', '.join(impossible)} needs clusters of three brokers.")
    return tuple(possible[name] for name in names) if names else tuple(possible.values())
