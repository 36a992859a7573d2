"""A ledger as it looks after weeks of work, and the configuration file of its flows; nothing in it is random."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from math import inf, sin
from pathlib import Path

from mirror_lib.config.loader import load
from mirror_lib.features.cutover.model import CutoverDefinition, Step
from mirror_lib.features.cutover.tables.cutovers import Cutovers, CutoverStepRow
from mirror_lib.features.verify.tables import Verifications
from mirror_lib.ledger.cutover_rows import CutRow
from mirror_lib.ledger.location import FILE_NAME, open_ledger
from mirror_lib.ledger.models import METADATA
from mirror_lib.ledger.observed_rows import HeartbeatObservationRow, PartitionObservationRow, StepOutcomeRow
from mirror_lib.ledger.store import Ledger
from mirror_lib.ledger.tables.writing import upsert
from tests.support.ledger import rows
from tests.support.ledger.cutover_rows import cutover_row

_EVERY = timedelta(minutes=5)
_TOPICS = ("orders", "payments", "shipments", "customer-events", "clickstream", "audit.log", "inventory", "returns")


@dataclass(frozen=True, slots=True)
class Story:
    """How one flow stands."""

    source: str
    target: str
    #: `fine`, `lagging`, `tight`, `stalled`, `failed`, `different`, `stale` or `new`.
    kind: str = "fine"

    @property
    def flow(self) -> str:
        return f"{self.source}->{self.target}"

    @property
    def dag_id(self) -> str:
        return f"mirror__{self.source}__{self.target}"


STORIES = (
    Story("berlin", "frankfurt"),
    Story("frankfurt", "dublin", "lagging"),
    Story("berlin", "cloud", "stalled"),
    Story("dublin", "cloud", "tight"),
    Story("madrid", "frankfurt", "failed"),
    Story("oslo", "dublin", "different"),
    Story("paris", "cloud", "stale"),
    Story("lisbon", "madrid", "new"),
)


def many(flows: int) -> tuple[Story, ...]:
    """So many flows between about half as many clusters, nearly all of them fine."""
    kinds = ("fine", "fine", "lagging", "fine", "fine", "tight", "fine", "fine", "fine", "stalled")
    return tuple(
        Story(f"c{number // 2:03}", f"c{number // 2 + 1 + number % 2 * 7:03}", kinds[number % len(kinds)])
        for number in range(flows)
    )


def write_config(folder: Path, stories: tuple[Story, ...] = STORIES) -> Path:
    """The configuration file of these flows; its ledger stands beside it."""
    clusters = sorted({alias for story in stories for alias in (story.source, story.target)})
    lines = [
        f"clusters = {', '.join(clusters)}",
        *(f"{alias}.bootstrap.servers = {alias}.example:9092" for alias in clusters),
        "emit.heartbeats.enabled = false",
        f"mirror.ledger.url = sqlite:///{folder / FILE_NAME}",
    ]
    for story in stories:
        lines += [f"{story.flow}.enabled = true", f"{story.flow}.mirror.schedule = 5m"]
    path = folder / "mirror.properties"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def seed(
    config: Path,
    stories: tuple[Story, ...] = STORIES,
    *,
    partitions: int = 48,
    observations: int = 288,
    now: datetime | None = None,
) -> None:
    """Fill the ledger of a configuration file.

    Args:
        config: as `write_config` wrote it.
        stories: its flows.
        partitions: of each flow.
        observations: of each flow, five minutes apart.
        now: the newest of them is about three minutes older.
    """
    moment = now or datetime.now(UTC)
    with open_ledger(load(config)) as ledger:
        for number, story in enumerate(stories):
            if story.kind != "new":
                _seed_flow(ledger, story, number, partitions, observations, moment)
        if len(stories) <= len(STORIES):
            _seed_cutover(ledger, stories[0], moment)


def _seed_flow(ledger: Ledger, story: Story, number: int, partitions: int, observations: int, moment: datetime) -> None:
    newest = moment - (timedelta(hours=7) if story.kind == "stale" else timedelta(minutes=3))
    _seed_history(ledger, story, number, partitions, observations, newest)
    _seed_runs(ledger, story, newest)
    _seed_groups(ledger, story, newest)
    _seed_proofs(ledger, story, partitions, newest)
    is_stale = story.kind == "stale"
    beat = HeartbeatObservationRow(
        flow=story.flow,
        pair=story.flow,
        observed_at=newest,
        emitted_at=newest - timedelta(seconds=9000 if is_stale else 40),
        verdict="stale" if is_stale else "fresh",
        detail="the newest heartbeat is older than 11 minutes" if is_stale else None,
    )
    ledger.observations.save_heartbeats(story.flow, [beat])
    for step, differences, failed in (
        ("sync_topics", 0, 0),
        ("sync_topic_configs", 3, 0),
        ("sync_topic_acls", 0, 2 if story.kind == "lagging" else 0),
        ("translate_offsets", 12, 0),
        ("sync_group_offsets", 0, 0),
    ):
        ledger.observations.save_step(
            StepOutcomeRow(
                flow=story.flow,
                step=step,
                finished_at=newest,
                differences=differences,
                failed=failed,
                skipped="its interval of 600 s has not passed" if step == "sync_group_offsets" else None,
                summary={
                    "changed": differences,
                    "failed": failed,
                    "problems": ["User:shop WRITE on topic orders: CLUSTER_AUTHORIZATION_FAILED"] * bool(failed),
                },
            )
        )
    ledger.audits.note(by="marta", action="unpause", subject=story.dag_id, flow=story.flow)


def _seed_history(
    ledger: Ledger, story: Story, number: int, partitions: int, observations: int, newest: datetime
) -> None:
    observed = [_partition(story, index, newest) for index in range(partitions)]
    for back in range(observations - 1, -1, -1):
        at = newest - back * _EVERY
        wave = 0.5 + 0.5 * sin((observations - back) / 23 + number)
        records = int(wave * 8_000)
        if story.kind in ("lagging", "tight"):
            records += (observations - back) * 9_000
        if story.kind == "stalled" and back < 60:
            records += (60 - back) * 22_000
        behind = records if back else sum(row.records_behind for row in observed)
        ledger.observations.save_flow(
            rows.observed_flow(
                flow=story.flow,
                observed_at=at,
                partitions=partitions,
                lagging=sum(row.records_behind > 0 for row in observed),
                stalled=sum(row.reason is not None for row in observed),
                records_behind=behind,
                bytes_behind=behind * 410,
                seconds_behind=float(behind // 700),
                catch_up_seconds=inf if story.kind == "tight" else behind / 4_000,
                headroom_seconds=7_200.0 if story.kind == "tight" else inf,
                outlook="tight" if story.kind == "tight" else "ok",
                writes_per_second=700 + 300 * wave,
                groups=6,
                groups_behind=2 if story.kind in ("lagging", "stalled") else 0,
                duplicates=1_240 if story.kind in ("lagging", "stalled") else 0,
                open_gaps=1 if story.kind == "stalled" else 0,
            ),
            () if back else observed,
        )


def _partition(story: Story, index: int, at: datetime) -> PartitionObservationRow:
    topic = _TOPICS[index % len(_TOPICS)]
    number = index // len(_TOPICS)
    end = 4_000_000 + index * 7_919
    behind = (index * 37) % 400 if index % 3 == 0 else 0
    if story.kind in ("lagging", "tight") and index % 4 == 0:
        behind += 60_000 + index * 911
    stalled = story.kind == "stalled" and index in (2, 10)
    if stalled:
        behind = 640_000
    return rows.observed_partition(
        flow=story.flow,
        topic=topic,
        partition=number,
        target_topic=f"{story.source}.{topic}",
        observed_at=at,
        log_start=1_000_000,
        log_end=end,
        position=end - behind,
        bytes_behind=behind * 410,
        behind_since=at - timedelta(seconds=behind / 700) if behind else None,
        catch_up_seconds=inf if stalled else behind / 4_000,
        headroom_seconds=7_200.0 if story.kind == "tight" and behind else inf,
        outlook="already-lost" if stalled and index == 2 else "tight" if story.kind == "tight" and behind else "ok",
        reason="retention-gap" if stalled and index == 2 else "poison" if stalled else None,
        detail="the source deleted 5,200 records before they were copied" if stalled and index == 2 else None,
    )


def _seed_round(ledger: Ledger, flow: str, run_id: str, *, began: datetime, records: int) -> None:
    copied = {"committed_at": began + timedelta(seconds=44), "oldest_age_ms": 340_000, "newest_age_ms": 44_500}
    ledger.save_round(
        rows.round_row(
            run_id,
            flow=flow,
            began_at=began,
            opening_seconds=1.0,
            copying_seconds=40.0,
            committing_seconds=2.5,
            lag_records=records or 50_000,
            records=records,
            bytes=records * 410,
            heaviest_bytes=records * 410,
            expected_seconds=40.0,
            **(copied if records else {}),
        )
    )


def _seed_runs(ledger: Ledger, story: Story, newest: datetime) -> None:
    for back in range(19, -1, -1):
        run_id = f"{story.flow}-{back}"
        failed = story.kind == "failed" and back < 3
        ledger.start_run(run_id=run_id, flow=story.flow, trigger=f"airflow {story.dag_id} scheduled__{back}")
        records = 0 if failed else 180_000 + 90_000 * ((back * 7) % 5)
        ledger.save_partition_runs(
            [
                rows.partition_run(
                    run_id,
                    target_topic=f"{story.source}.orders",
                    end_offset=records,
                    source_next=records,
                    target_next=records,
                    records=records,
                    bytes=records * 410,
                    seconds=40.0,
                    state="failed" if failed else "done",
                    updated_at=newest,
                )
            ]
        )
        _seed_round(ledger, story.flow, run_id, began=newest - back * _EVERY, records=records)
        ledger.finish_run(
            run_id,
            state="failed" if failed else "succeeded",
            error={
                "reason": "broker-unreachable",
                "what": f"no broker of cluster {story.source} answered.",
                "action": "Check its bootstrap.servers and the network.",
            }
            if failed
            else None,
        )
        _date_run(ledger, run_id, newest - back * _EVERY)


def _date_run(ledger: Ledger, run_id: str, ended: datetime) -> None:
    """Put a run into the past; the ledger itself only ever knows now."""
    run = ledger.run(run_id)
    begun = ended - timedelta(seconds=55 + run.records % 17)
    with ledger.database.write() as connection:
        upsert(
            connection,
            METADATA.tables["run"],
            [replace(run, started_at=begun, finished_at=ended, heartbeat_at=ended)],
        )


def _seed_groups(ledger: Ledger, story: Story, at: datetime) -> None:
    groups = []
    for number, group in enumerate(("billing", "search-indexer", "fraud", "warehouse", "mailer", "reports")):
        for partition in range(6):
            behind = story.kind in ("lagging", "stalled") and number < 2
            groups.append(
                rows.observed_group(
                    group,
                    partition,
                    flow=story.flow,
                    topic=_TOPICS[number],
                    target_topic=f"{story.source}.{_TOPICS[number]}",
                    observed_at=at,
                    upstream=900_000 + partition,
                    target_offset=899_900 if behind else 900_000 + partition,
                    target_committed=899_900,
                    duplicates=100 + partition if behind else 0,
                    skipped=0,
                    reason="between-syncs" if behind else None,
                    what="continues at the last known offset before its own" if behind else None,
                )
            )
    ledger.observations.save_groups(story.flow, groups)


def _seed_proofs(ledger: Ledger, story: Story, partitions: int, at: datetime) -> None:
    proofs = []
    for index in range(partitions):
        different = story.kind == "different" and index == 5
        proofs.append(
            rows.verification(
                id=f"verify-{story.flow}",
                flow=story.flow,
                topic=_TOPICS[index % len(_TOPICS)],
                partition=index // len(_TOPICS),
                target_topic=f"{story.source}.{_TOPICS[index % len(_TOPICS)]}",
                mode="recent",
                verdict="different" if different else "equal",
                source_first=1_000_000,
                source_next=3_900_000 + index,
                target_next=2_900_000 + index,
                records=2_900_000,
                bytes=2_900_000 * 410,
                difference_count=3 if different else 0,
                differences=[{"kind": "missing", "source_offset": 3_411_002, "target_offset": 2_411_002}]
                if different
                else None,
                started_at=at - timedelta(hours=2, minutes=9),
                finished_at=at - timedelta(hours=2),
            )
        )
    Verifications(ledger).save(proofs)
    if story.kind == "stalled":
        ledger.record_gap(
            rows.gap(
                id="9f6d2c1e-0000-4000-8000-000000000001",
                flow=story.flow,
                topic="shipments",
                first_offset=3_370_638,
                next_offset=3_375_838,
                first_time=at - timedelta(hours=5),
                last_time=at - timedelta(hours=1),
                detail="the source deleted 5,200 offsets before they were copied",
                found_at=at - timedelta(hours=1),
            )
        )


def _seed_cutover(ledger: Ledger, story: Story, moment: datetime) -> None:
    begun = moment - timedelta(minutes=52)
    definition = CutoverDefinition(name="orders-wave-1", flow=story.flow, topics=("orders", "payments"))
    row = cutover_row(definition, step="approve", at=begun, by="marta")
    Cutovers(ledger).create(replace(row, updated_at=moment - timedelta(minutes=1)))
    failback = {"name": "failback", "passed": False, "what": "the flow frankfurt->berlin is not enabled"}
    gates = {
        Step.DRAIN: [{"name": "lag", "passed": True, "what": "0 records left to copy"}],
        Step.APPROVE: [{**failback, "action": "Enable it."}],
    }
    at = begun
    steps = (
        (Step.INVENTORY, 8, "passed"),
        (Step.PREFLIGHT, 21, "passed"),
        (Step.REHEARSE, 1900, "passed"),
        (Step.FREEZE, 340, "passed"),
        (Step.DRAIN, 14, "failed"),
        (Step.DRAIN, 9, "passed"),
        (Step.VERIFY, 31, "passed"),
        (Step.TRANSLATE, 6, "passed"),
        (Step.APPROVE, None, "waiting"),
    )
    attempts: dict[Step, int] = {}
    for step, seconds, state in steps:
        attempts[step] = attempts.get(step, 0) + 1
        ended = None if seconds is None else at + timedelta(seconds=seconds)
        Cutovers(ledger).save_step(
            CutoverStepRow(
                cutover=definition.name,
                step=step.value,
                attempt=attempts[step],
                state=state,
                gates=gates.get(step, []),
                facts={"rounds": 2} if step is Step.DRAIN else {},
                by="marta",
                started_at=at,
                finished_at=ended,
                error={"what": "a writer is still at work on orders-3.", "action": "Stop it."}
                if state == "failed"
                else None,
            )
        )
        at = (ended or at) + timedelta(seconds=4)
    Cutovers(ledger).save_cuts(
        definition.name,
        [
            CutRow(
                cutover=definition.name,
                topic="orders",
                partition=number,
                target_topic="berlin.orders",
                source_end=4_000_000,
                target_end=3_000_000,
                cut_at=at,
            )
            for number in range(12)
        ],
    )
