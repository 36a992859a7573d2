"""All clusters and flows as a graph, each flow with its state, by a constant number of queries."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from fastapi import APIRouter, Depends
from pydantic import Field

from mirror_lib.errors import ConfigurationError, LedgerError
from mirror_lib.features.cutover.states.situation import newest_situations
from mirror_lib.features.page.api_models import Answer, Duration, Problem, Seen, plain_seconds
from mirror_lib.features.page.context import ThePage, TheVisitor, visible
from mirror_lib.features.page.control import DagState, Visitor
from mirror_lib.features.page.cutovers import CutoverUnderWay
from mirror_lib.features.page.flow_state import FlowFacts, FlowState, judge, run_state
from mirror_lib.features.page.flows import FileProblem, FlowSource, ServedFlow
from mirror_lib.features.page.limits import Kind
from mirror_lib.features.page.queries import PageQueries
from mirror_lib.features.page.security import limit_requests
from mirror_lib.features.verify.verdicts import VerdictQueries, Verdicts
from mirror_lib.ledger.location import ledger_url
from mirror_lib.ledger.observed_rows import FlowObservationRow, HeartbeatObservationRow
from mirror_lib.ledger.rows import RunRow
from mirror_lib.ledger.store import Ledger
from mirror_lib.ledger.tables.gaps import OpenGaps
from mirror_lib.past_runs.outlooks import Outlook

#: Older comparisons prove little about a log whose records are gone by now.
VERDICTS_KEPT = timedelta(days=30)
_SPARK = timedelta(hours=6)
_SPARK_POINTS = 24

_HIDDEN_PROBLEM = Problem(
    reason=ConfigurationError.reason,
    what="A configuration file has errors. You have no permission to read its flows.",
    action="Ask a user who can read them, or see the DAG mirror_broken_files.",
)

router = APIRouter()
_DagStates = Callable[[Sequence[str]], Mapping[str, DagState]]


class FlowOverview(Answer):
    """Summary of one flow."""

    name: str
    source: str
    target: str
    dag_id: str
    schedule: str | None
    paused: bool | None
    state: FlowState
    #: When its lag was last observed; the numbers down to `skipped` are of that moment.
    seen: Seen | None = None
    partitions: int | None = None
    lagging: int | None = None
    stalled: int | None = None
    records_behind: int | None = None
    bytes_behind: int | None = None
    seconds_behind: Duration = None
    catch_up_seconds: Duration = None
    headroom_seconds: Duration = None
    outlook: Outlook | None = None
    groups: int | None = None
    groups_behind: int | None = None
    duplicates: int | None = None
    skipped: int | None = None
    #: Stall reason -> partitions.
    reasons: dict[str, int] = Field(default_factory=dict)
    open_gaps: int = 0
    verified_at: datetime | None = None
    different: int = 0
    last_run_state: str | None = None
    last_run_at: datetime | None = None
    last_run_records: int | None = None
    heartbeat: str | None = None
    #: Lag (records) of the last hours, oldest first, in equal steps of time; null without an observation.
    spark: list[int | None] = Field(default_factory=list)


class Overview(Answer):
    """Summary of everything that the visitor may see."""

    now: datetime
    clusters: list[str]
    flows: list[FlowOverview]
    cutovers: list[CutoverUnderWay]
    #: Files and ledgers that cannot be used.
    problems: list[Problem]
    #: Flows whose DAG the visitor may not read.
    hidden: int
    #: The configuration files, for visitors who see no flow though none is hidden.
    files: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """The state of all flows in one ledger."""

    observations: Mapping[str, FlowObservationRow] = field(default_factory=dict)
    runs: Mapping[str, RunRow] = field(default_factory=dict)
    #: Ids of runs that died.
    dead: Collection[str] = ()
    lag: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    reasons: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    gaps: Mapping[str, Sequence[OpenGaps]] = field(default_factory=dict)
    failed_steps: Mapping[str, int] = field(default_factory=dict)
    verdicts: Mapping[str, Verdicts] = field(default_factory=dict)
    heartbeats: Mapping[str, HeartbeatObservationRow] = field(default_factory=dict)


@router.get("/overview", dependencies=[Depends(limit_requests(Kind.LISTS))])
def overview(here: ThePage, visitor: TheVisitor) -> Overview:
    """Return all flows that the visitor may see."""
    return look_at_all(here.flows, here.control.dag_states, visitor, datetime.now(UTC))


def look_at_all(source: FlowSource, dag_states: _DagStates, visitor: Visitor, now: datetime) -> Overview:
    """Return the overview at one moment."""
    served = source.read()
    flows = visible(served.flows, visitor)
    problems = _file_problems(served.problems, visitor)
    states = dag_states([flow.dag_id for flow in flows])
    shown: list[FlowOverview] = []
    cutovers: list[CutoverUnderWay] = []
    for members in _by_ledger(flows).values():
        known = _Known()
        try:
            ledger = source.ledger(members[0].config)
            if ledger is not None:
                known = _read(ledger, [flow.name for flow in members], now)
                cutovers += _cutovers(ledger, members)
        except LedgerError as error:
            problems.append(Problem.of(error))
        shown += [_flow(flow, known, states.get(flow.dag_id), now) for flow in members]
    shown.sort(key=lambda flow: flow.name)
    hides_nothing = len(flows) == len(served.flows) and _HIDDEN_PROBLEM not in problems
    return Overview(
        now=now,
        clusters=sorted({alias for flow in flows for alias in (flow.settings.flow.source, flow.settings.flow.target)}),
        flows=shown,
        cutovers=cutovers,
        problems=problems,
        hidden=len(served.flows) - len(flows),
        files=[str(path) for path in served.files] if hides_nothing else [],
    )


def _file_problems(found: Sequence[FileProblem], visitor: Visitor) -> list[Problem]:
    """Return problems of files. The text is visible only to visitors who may read all flows of a file: it may name any
    of them.
    """
    readable = visitor.readable({dag_id for each in found for dag_id in each.dag_ids})
    shown = [Problem.of(each.error) for each in found if readable.issuperset(each.dag_ids)]
    return shown if len(shown) == len(found) else [*shown, _HIDDEN_PROBLEM]


def facts_of(flow: ServedFlow, ledger: Ledger | None, state: DagState | None, now: datetime) -> FlowOverview:
    """Return one flow for the overview."""
    known = _Known() if ledger is None else _read(ledger, [flow.name], now)
    return _flow(flow, known, state, now)


def _by_ledger(flows: Sequence[ServedFlow]) -> dict[str, list[ServedFlow]]:
    found: dict[str, list[ServedFlow]] = {}
    for flow in flows:
        found.setdefault(ledger_url(flow.config), []).append(flow)
    return found


def _read(ledger: Ledger, flows: Sequence[str], now: datetime) -> _Known:
    one = flows[0] if len(flows) == 1 else None
    pages = PageQueries(ledger)
    runs = pages.newest_runs(flows)
    return _Known(
        observations=pages.newest_observations(flows),
        runs=runs,
        dead=ledger.dead_runs(runs.values()),
        lag=pages.lag_since(flows, now - _SPARK, _SPARK / _SPARK_POINTS),
        reasons=ledger.observations.reasons(),
        gaps=_gaps(ledger),
        failed_steps=pages.failed_steps(),
        verdicts=VerdictQueries(ledger).of_flows(now - VERDICTS_KEPT, one),
        heartbeats={row.flow: row for row in ledger.observations.heartbeats(one) if row.pair == row.flow},
    )


def _gaps(ledger: Ledger) -> dict[str, list[OpenGaps]]:
    found: dict[str, list[OpenGaps]] = {}
    for each in ledger.open_gaps_by_cause():
        found.setdefault(each.flow, []).append(each)
    return found


def _cutovers(ledger: Ledger, flows: Sequence[ServedFlow]) -> list[CutoverUnderWay]:
    dags = {flow.name: flow.dag_id for flow in flows}
    return [
        CutoverUnderWay.of(row, present, dags[row.flow])
        for row, present in newest_situations(ledger)
        if row.flow in dags and row.state not in ("finished", "rolled-back")
    ]


def _flow(flow: ServedFlow, known: _Known, dag: DagState | None, now: datetime) -> FlowOverview:
    name = flow.name
    row, run = known.observations.get(name), known.runs.get(name)
    verdicts, gaps = known.verdicts.get(name, Verdicts()), known.gaps.get(name, ())
    facts = FlowFacts(
        now=now,
        stale_after_seconds=flow.stale_after_seconds,
        observation=row,
        run=run,
        died=run is not None and run.id in known.dead,
        paused=None if dag is None else dag.paused,
        open_gaps=sum(each.gaps for each in gaps),
        gap_topics=tuple(sorted({topic for each in gaps for topic in each.named})),
        different=verdicts.different,
        failed_steps=known.failed_steps.get(name, 0),
        broken=flow.broken,
    )
    heartbeat = known.heartbeats.get(name)
    shown = FlowOverview(
        name=name,
        source=flow.settings.flow.source,
        target=flow.settings.flow.target,
        dag_id=flow.dag_id,
        schedule=flow.settings.schedule,
        paused=facts.paused,
        state=judge(facts),
        reasons=dict(known.reasons.get(name, {})),
        open_gaps=facts.open_gaps,
        verified_at=verdicts.last_at,
        different=verdicts.different,
        last_run_state=None if run is None else run_state(run, facts.died),
        last_run_at=None if run is None else run.started_at,
        last_run_records=None if run is None else run.records,
        heartbeat=None if heartbeat is None else heartbeat.verdict,
        spark=_spark(known.lag.get(name)),
    )
    if row is None:
        return shown
    return shown.model_copy(
        update={
            "seen": Seen(at=row.observed_at, stale_after_seconds=flow.stale_after_seconds),
            **{name: getattr(row, name) for name in _COUNTS},
            **{name: plain_seconds(getattr(row, name)) for name in _DURATIONS},
            "outlook": Outlook(row.outlook),
        }
    )


_COUNTS = (
    "partitions",
    "lagging",
    "stalled",
    "records_behind",
    "bytes_behind",
    "groups",
    "groups_behind",
    "duplicates",
    "skipped",
)
_DURATIONS = ("seconds_behind", "catch_up_seconds", "headroom_seconds")


def _spark(behind: Mapping[int, int] | None) -> list[int | None]:
    return [] if behind is None else [behind.get(place) for place in range(_SPARK_POINTS)]
