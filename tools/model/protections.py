"""Protections of the product that can be disabled from outside, to see if the model detects their absence.

The production code is not aware of it: functions are replaced in the process of a command, as in
`tools.faults.drivers.fault_points`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any


def _put(owner: Any, **replacements: Any) -> None:
    for name, replacement in replacements.items():
        if not hasattr(owner, name):
            # Otherwise a renamed protection would count as one that the model does not detect.
            raise AttributeError(f"{owner} has no {name} that could be taken away")
        setattr(owner, name, replacement)


def _without_fence() -> None:
    from mirror_lib.copy.takeover import fencing

    async def raise_epoch_only(client: Any, name: str, _targets: Any, **_: Any) -> Any:
        # A new epoch alone: the broker learns it with the first batch, and accepts older ones until then.
        return await client.producers.init_producer_id(name, deadline=time.monotonic() + 30)

    _put(fencing, fence_name=raise_epoch_only)


def _without_tail() -> None:
    from mirror_lib.copy.takeover import recovery
    from mirror_lib.copy.takeover.tail_match import TailMatch

    async def nothing_there(self: Any, _end: int) -> Any:
        await asyncio.sleep(0)
        return TailMatch(self._takeover.source_offset, records=0, unknown=0, runs=(), skipped=()), ()

    _put(recovery._Recovery, _match=nothing_there)  # noqa: SLF001


def _without_identity() -> None:
    from mirror_lib.identity import targets
    from mirror_lib.planning import plan
    from mirror_lib.sync.groups import flow as flow_groups
    from mirror_lib.sync.groups import read as groups

    def unchanged(*_: Any, **__: Any) -> None:
        return None

    _put(plan, find_target_change=unchanged)
    _put(targets, target_change=unchanged)
    _put(groups, position_change=unchanged)
    _put(flow_groups, with_changed_logs=_same_facts)


def _same_facts(_flow: Any, facts: Any, _chosen: Any) -> Any:
    return facts


def _without_history() -> None:
    from mirror_lib.identity import ledger_positions
    from mirror_lib.identity.histories import SOUND_HISTORY

    def sound(*_: Any) -> Any:
        return SOUND_HISTORY

    _put(ledger_positions, history_of=sound)


def _without_last_record() -> None:
    from mirror_lib.planning import source_logs
    from mirror_lib.sync.groups import flow as flow_groups

    async def none_asked(*_: Any) -> Any:
        await asyncio.sleep(0)
        return {}

    _put(source_logs, compare_last_records=none_asked)
    _put(flow_groups, with_changed_logs=_same_facts)


def _without_checkpoint_age() -> None:
    from mirror_lib.sync.groups import read as groups

    read_checkpoints = groups._read_checkpoints  # noqa: SLF001

    def of_any_copy(flow: Any, _begun: Any) -> Any:
        return read_checkpoints(flow, {})

    _put(groups, _read_checkpoints=of_any_copy)


def _without_new_topics() -> None:
    from mirror_lib.copy import flow_plan, run

    def unknown(*_: Any) -> None:
        return None

    _put(flow_plan, stored_topics=unknown)
    _put(run, stored_topics=unknown)


def _without_group_gate() -> None:
    from mirror_lib.sync.groups import flow as flow_groups
    from mirror_lib.sync.groups import plan as groups

    plan_groups = groups.plan_groups

    def ungated(topology: Any, facts: Any) -> Any:
        return plan_groups(topology, replace(facts, target_errors={}, target_ends={}))

    def none_skipped(*_: Any) -> int:
        return 0

    _put(flow_groups, plan_groups=ungated)
    _put(groups._Planner, _count_skipped=none_skipped)  # noqa: SLF001


def _without_uncommitted() -> None:
    from mirror_lib.sync.groups.uncommitted import PartitionSizes

    def none_missing(*_: Any) -> Any:
        return iter(())

    _put(PartitionSizes, missing=none_missing)


def _without_unselected() -> None:
    from mirror_lib.copy import run

    def all_selected(*_: Any, **__: Any) -> Any:
        return ()

    _put(run, unselected_partitions=all_selected)


def _without_aborted() -> None:
    from mirror_lib.copy.commit import commit

    def not_counted(*_: Any) -> Any:
        return ()

    _put(commit, transaction_count_rows=not_counted)


#: Protection -> function that disables it in this process.
PROTECTIONS: Mapping[str, Callable[[], None]] = {
    "fence": _without_fence,
    "tail": _without_tail,
    "identity": _without_identity,
    "history": _without_history,
    "last-record": _without_last_record,
    "checkpoint-age": _without_checkpoint_age,
    "new-topics": _without_new_topics,
    "group-gate": _without_group_gate,
    "uncommitted": _without_uncommitted,
    "no-longer-selected": _without_unselected,
    "aborted": _without_aborted,
}
