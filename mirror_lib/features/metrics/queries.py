"""Values of metrics: sums over many rows, computed by the database for several flows at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, Table, and_, bindparam, case, func, or_, select

from mirror_lib.features.metrics.figures import (
    NO_RUNS,
    FlowFigures,
    GapTotals,
    GroupTotals,
    RunTimes,
    RunTotals,
    UncommittedTotals,
    VerifyTotals,
)
from mirror_lib.ledger.cutover_rows import CutoverRow
from mirror_lib.ledger.metadata import selected
from mirror_lib.ledger.models import METADATA
from mirror_lib.ledger.observed_rows import (
    FlowObservationRow,
    HeartbeatObservationRow,
    PartitionObservationRow,
    StepOutcomeRow,
)
from mirror_lib.ledger.queries.group_columns import is_own
from mirror_lib.ledger.rows import GapState, RoundRow, RunLockRow, RunRow, RunState
from mirror_lib.ledger.store import Ledger
from mirror_lib.ledger.tables.locks import live_locks, lock_name
from mirror_lib.ledger.tables.transaction_counts import transaction_totals
from mirror_lib.ledger.tables.verifications import WHOLE_RECORDS, is_of_position, is_of_present_copy

_TABLES = METADATA.tables
_RUNS: Table = _TABLES["run"]
_PARTITION_RUNS: Table = _TABLES["partition_run"]
_ROUNDS: Table = _TABLES["round"]
_GAPS: Table = _TABLES["gap"]
_POSITIONS: Table = _TABLES["position"]
_VERIFICATIONS: Table = _TABLES["verification"]
_FLOWS: Table = _TABLES["flow_observation"]
_PARTITIONS: Table = _TABLES["partition_observation"]
_GROUPS: Table = _TABLES["group_observation"]
_HEARTBEATS: Table = _TABLES["heartbeat_observation"]
_STEPS: Table = _TABLES["step_outcome"]
_CUTOVERS: Table = _TABLES["cutover"]
#: As `PartitionObservationRow.records_behind` if the log end is known; may be negative.
_BEHIND = _PARTITIONS.c.log_end - func.coalesce(_PARTITIONS.c.position, _PARTITIONS.c.log_start, 0)

#: Well below SQLite's limit of parameters in one statement.
_NAMES_AT_ONCE = 500
#: Maximum number of latest cutovers to read, across all flows.
_CUTOVERS_LOOKED_AT = 100


class MetricsQueries:
    """Read the values of metrics. Raises `LedgerError`."""

    def __init__(self, ledger: Ledger) -> None:
        self._database = ledger.database

    def figures(self, flows: Sequence[str], *, worst_partitions: int = 0) -> tuple[FlowFigures, ...]:
        """Figures of some flows, in one transaction.

        Args:
            flows: names of flows.
            worst_partitions: how many partitions of each flow to return, most lag first.
        """
        names = list(dict.fromkeys(flows))
        found: list[FlowFigures] = []
        with self._database.read() as connection:
            for first in range(0, len(names), _NAMES_AT_ONCE):
                found += _figures(connection, names[first : first + _NAMES_AT_ONCE], worst_partitions)
        return tuple(found)

    def group_totals(self, flow: str) -> GroupTotals | None:
        """A flow's groups, added up; None if they were never observed."""
        with self._database.read() as connection:
            return _group_totals(connection, [flow]).get(flow)


def _figures(connection: Connection, flows: list[str], worst_partitions: int) -> list[FlowFigures]:
    runs = _run_totals(connection, flows)
    gaps = _gap_totals(connection, flows)
    uncommitted = transaction_totals(connection, flows)
    verified = _verify_totals(connection, flows)
    stalled = _counts(connection, _PARTITIONS, flows)
    stalled_behind = _stalled_behind(connection, flows)
    unsynced = _counts(connection, _GROUPS, flows)
    groups = _group_totals(connection, flows)
    steps = _group_by_flow(connection, _STEPS, StepOutcomeRow, flows)
    heartbeats = _group_by_flow(connection, _HEARTBEATS, HeartbeatObservationRow, flows)
    cutovers = _cutovers(connection, flows)
    worst = _worst_partitions(connection, flows, worst_partitions) if worst_partitions else {}
    newest = {flow: _newest(connection, flow) for flow in flows}
    # After the runs: a run that has ended in between has released its lock.
    held = live_locks(connection)
    times = _run_times(connection, {each.with_records: flow for flow, each in newest.items() if each.with_records})
    return [
        FlowFigures(
            flow=flow,
            observed=newest[flow].observed[0] if newest[flow].observed else None,
            observed_before=newest[flow].observed[1] if len(newest[flow].observed) > 1 else None,
            last_run=newest[flow].ended,
            newest_run=newest[flow].run,
            is_running=_is_running(newest[flow].run, held.get(flow)),
            times=times.get(flow, ()),
            last_round=newest[flow].last_round,
            runs=runs.get(flow, NO_RUNS),
            gaps=gaps.get(flow, {}),
            uncommitted=UncommittedTotals(*uncommitted.get(flow, ())),
            verified=verified.get(flow),
            stalled=stalled.get(flow, {}),
            stalled_behind=stalled_behind.get(flow, {}),
            unsynced=unsynced.get(flow, {}),
            groups=groups.get(flow),
            steps=steps.get(flow, ()),
            heartbeats=heartbeats.get(flow, ()),
            cutovers=cutovers.get(flow, ()),
            carried=frozenset(each.name for each in cutovers.get(flow, ()) if lock_name(each.name) in held),
            worst=worst.get(flow, ()),
        )
        for flow in flows
    ]


def _is_running(run: RunRow | None, lock: RunLockRow | None) -> bool:
    return run is not None and run.state == RunState.RUNNING and not run.has_died(lock)


class _Newest(NamedTuple):
    observed: list[FlowObservationRow]
    run: RunRow | None
    ended: RunRow | None
    with_records: str | None
    last_round: RoundRow | None


# Built once: the queries run for every flow, and building them takes longer than executing them.
_OF_FLOW = _RUNS.c.flow == bindparam("flow")
_NEWEST_FIRST = _RUNS.c.started_at.desc()
_NEWEST_RUN = select(_RUNS).where(_OF_FLOW).order_by(_NEWEST_FIRST).limit(1)
_NEWEST_ENDED = select(_RUNS).where(_OF_FLOW, _RUNS.c.finished_at.is_not(None)).order_by(_NEWEST_FIRST).limit(1)
_NEWEST_WITH_RECORDS = select(_RUNS).where(_OF_FLOW, _RUNS.c.records > 0).order_by(_NEWEST_FIRST).limit(1)
_NEWEST_ROUND = (
    select(_ROUNDS)
    .where(_ROUNDS.c.flow == bindparam("flow"), _ROUNDS.c.records > 0, _ROUNDS.c.committed_at.is_not(None))
    .order_by(_ROUNDS.c.began_at.desc(), _ROUNDS.c.number.desc())
    .limit(1)
)
_NEWEST_OBSERVED = (
    select(*selected(_FLOWS)).where(_FLOWS.c.flow == bindparam("flow")).order_by(_FLOWS.c.observed_at.desc()).limit(2)
)


def _newest(connection: Connection, flow: str) -> _Newest:
    """The latest rows of one flow: a few index look-ups, however long the history is."""
    observed = connection.execute(_NEWEST_OBSERVED, {"flow": flow}).mappings()
    newest = _one_run(connection, _NEWEST_RUN, flow)
    ended = newest if newest is None or newest.finished_at else _one_run(connection, _NEWEST_ENDED, flow)
    copied = newest if newest is None or newest.records else _one_run(connection, _NEWEST_WITH_RECORDS, flow)
    last_round = connection.execute(_NEWEST_ROUND, {"flow": flow}).mappings().one_or_none()
    return _Newest(
        [FlowObservationRow(**row) for row in observed],
        newest,
        ended,
        copied.id if copied else None,
        None if last_round is None else RoundRow(**last_round),
    )


def _one_run(connection: Connection, query: Select[Any], flow: str) -> RunRow | None:
    found = connection.execute(query, {"flow": flow}).mappings().one_or_none()
    return None if found is None else RunRow(**found)


def _run_totals(connection: Connection, flows: list[str]) -> dict[str, RunTotals]:
    columns = _RUNS.c
    ended_well = case((columns.state == RunState.SUCCEEDED.value, columns.finished_at))
    ended_badly = case((columns.state.in_([RunState.FAILED.value, RunState.PARTIAL.value]), 1), else_=0)
    query = (
        select(
            columns.flow,
            func.count(),
            func.sum(ended_badly),
            func.sum(columns.records),
            func.sum(columns.bytes),
            func.max(ended_well, type_=columns.finished_at.type),
        )
        .where(columns.flow.in_(flows))
        .group_by(columns.flow)
    )
    return {
        flow: RunTotals(runs, int(failed), int(records), int(size), last)
        for flow, runs, failed, records, size, last in connection.execute(query)
    }


def _run_times(connection: Connection, flows: Mapping[str, str]) -> dict[str, tuple[RunTimes, ...]]:
    """Times of the rounds, by flow.

    Args:
        flows: the flow of each run id.
    """
    columns = _PARTITION_RUNS.c
    query = (
        select(
            columns.run_id,
            func.min(columns.first_timestamp),
            func.max(columns.last_timestamp),
            func.max(columns.updated_at, type_=columns.updated_at.type),
            func.max(columns.seconds),
        )
        .where(columns.run_id.in_(list(flows)), columns.records > 0, columns.first_timestamp >= 0)
        .group_by(columns.run_id, columns.round)
    )
    found: dict[str, tuple[RunTimes, ...]] = {}
    for run_id, *times in connection.execute(query):
        flow = flows[run_id]
        found[flow] = (*found.get(flow, ()), RunTimes(*times))
    return found


def _gap_totals(connection: Connection, flows: list[str]) -> dict[str, dict[str, GapTotals]]:
    columns = _GAPS.c
    query = (
        select(
            columns.flow,
            columns.cause,
            func.count(),
            func.sum(func.coalesce(columns.records, columns.next_offset - columns.first_offset)),
            func.sum(case((columns.state == GapState.OPEN.value, 1), else_=0)),
        )
        .where(columns.flow.in_(flows))
        .group_by(columns.flow, columns.cause)
    )
    found: dict[str, dict[str, GapTotals]] = {}
    for flow, cause, gaps, records, undecided in connection.execute(query):
        found.setdefault(flow, {})[cause] = GapTotals(gaps, int(records), int(undecided))
    return found


def _verify_totals(connection: Connection, flows: list[str]) -> dict[str, VerifyTotals]:
    """As `verifications.verified_up_to`, for many flows and without a row for each partition."""
    columns = _VERIFICATIONS.c
    place = (columns.flow, columns.topic, columns.partition)
    compared = (
        select(
            *place,
            func.sum(case((columns.verdict == "different", 1), else_=0)).label("mismatches"),
            func.max(case((and_(columns.verdict == "different", columns.mode != "state"), columns.finished_at))).label(
                "differed_at"
            ),
        )
        .where(columns.flow.in_(flows))
        .group_by(*place)
        .subquery("compared")
    )
    since = and_(
        columns.flow == compared.c.flow,
        columns.topic == compared.c.topic,
        columns.partition == compared.c.partition,
        columns.verdict == "equal",
        columns.mode.in_(WHOLE_RECORDS),
        columns.source_next.is_not(None),
        or_(compared.c.differed_at.is_(None), columns.finished_at > compared.c.differed_at),
    )
    equal = (
        select(
            compared.c.flow,
            compared.c.topic,
            compared.c.partition,
            compared.c.mismatches,
            func.max(case((is_of_present_copy(), columns.source_next))).label("source_next"),
            func.max(case((is_of_present_copy(), columns.finished_at))).label("equal_at"),
        )
        .select_from(compared.outerjoin(_VERIFICATIONS, since).outerjoin(_POSITIONS, is_of_position()))
        .group_by(compared.c.flow, compared.c.topic, compared.c.partition, compared.c.mismatches)
        .subquery("equal")
    )
    here = and_(
        _PARTITIONS.c.flow == equal.c.flow,
        _PARTITIONS.c.topic == equal.c.topic,
        _PARTITIONS.c.partition == equal.c.partition,
    )
    ahead = _PARTITIONS.c.position - equal.c.source_next
    query = (
        select(
            equal.c.flow,
            func.sum(equal.c.mismatches),
            func.count(),
            func.count(equal.c.source_next),
            func.min(equal.c.equal_at, type_=columns.finished_at.type),
            func.sum(case((ahead > 0, ahead), else_=0)),
            func.min(case((ahead > 0, equal.c.equal_at)), type_=columns.finished_at.type),
        )
        .select_from(equal.outerjoin(_PARTITIONS, here))
        .group_by(equal.c.flow)
    )
    return {
        flow: VerifyTotals(int(mismatches), partitions, known, oldest, int(unverified), waiting)
        for flow, mismatches, partitions, known, oldest, unverified, waiting in connection.execute(query)
    }


def _counts(connection: Connection, table: Table, flows: list[str]) -> dict[str, dict[str, int]]:
    """Rows with a reason, by flow and reason."""
    query = (
        select(table.c.flow, table.c.reason, func.count())
        .where(table.c.flow.in_(flows), table.c.reason.is_not(None))
        .group_by(table.c.flow, table.c.reason)
    )
    found: dict[str, dict[str, int]] = {}
    for flow, reason, count in connection.execute(query):
        found.setdefault(flow, {})[reason] = count
    return found


def _stalled_behind(connection: Connection, flows: list[str]) -> dict[str, dict[str, int]]:
    """Source offsets that are not copied, of stalled partitions, by flow and reason."""
    columns = _PARTITIONS.c
    query = (
        select(columns.flow, columns.reason, func.sum(case((_BEHIND > 0, _BEHIND), else_=0)))
        .where(columns.flow.in_(flows), columns.reason.is_not(None))
        .group_by(columns.flow, columns.reason)
    )
    found: dict[str, dict[str, int]] = {}
    for flow, reason, offsets in connection.execute(query):
        found.setdefault(flow, {})[reason] = int(offsets)
    return found


def _group_totals(connection: Connection, flows: list[str]) -> dict[str, GroupTotals]:
    columns = _GROUPS.c
    per_group = (
        select(
            columns.flow,
            columns.group,
            func.count(columns.reason).label("reasons"),
            func.sum(columns.duplicates).label("duplicates"),
            func.sum(columns.skipped).label("skipped"),
        )
        .where(columns.flow.in_(flows), is_own(columns.reason))
        .group_by(columns.flow, columns.group)
        .subquery("per_group")
    )
    query = select(
        per_group.c.flow,
        func.count(),
        func.sum(case((per_group.c.reasons > 0, 1), else_=0)),
        func.sum(per_group.c.duplicates),
        func.sum(per_group.c.skipped),
    ).group_by(per_group.c.flow)
    return {
        flow: GroupTotals(groups, int(behind), *(None if each is None else int(each) for each in (again, skipped)))
        for flow, groups, behind, again, skipped in connection.execute(query)
    }


def _group_by_flow(connection: Connection, table: Table, kind: Any, flows: list[str]) -> dict[str, tuple[Any, ...]]:
    query = select(table).where(table.c.flow.in_(flows)).order_by(*table.primary_key.columns)
    found: dict[str, tuple[Any, ...]] = {}
    for row in connection.execute(query).mappings():
        found[row["flow"]] = (*found.get(row["flow"], ()), kind(**row))
    return found


def _cutovers(connection: Connection, flows: list[str]) -> dict[str, tuple[CutoverRow, ...]]:
    query = (
        select(_CUTOVERS)
        .where(_CUTOVERS.c.flow.in_(flows))
        .order_by(_CUTOVERS.c.created_at.desc(), _CUTOVERS.c.name)
        .limit(_CUTOVERS_LOOKED_AT)
    )
    found: dict[str, tuple[CutoverRow, ...]] = {}
    for row in connection.execute(query).mappings():
        found[row["flow"]] = (*found.get(row["flow"], ()), CutoverRow(**row))
    return found


def _worst_partitions(
    connection: Connection, flows: list[str], number: int
) -> dict[str, tuple[PartitionObservationRow, ...]]:
    columns = _PARTITIONS.c
    place = func.row_number().over(
        partition_by=columns.flow, order_by=(_BEHIND.desc(), columns.topic, columns.partition)
    )
    ranked = select(_PARTITIONS, place.label("place")).where(columns.flow.in_(flows), _BEHIND > 0).subquery("ranked")
    wanted = [ranked.c[column.name] for column in _PARTITIONS.columns]
    query = select(*wanted).where(ranked.c.place <= number).order_by(ranked.c.flow, ranked.c.place)
    found: dict[str, tuple[PartitionObservationRow, ...]] = {}
    for row in connection.execute(query).mappings():
        found[row["flow"]] = (*found.get(row["flow"], ()), PartitionObservationRow(**row))
    return found
