"""The steps while the writers stand still: they are stopped, the rest is copied, the cut is noted and compared."""

from __future__ import annotations

from collections.abc import Iterable

from mirror_lib.ledger.cutover_rows import CutRow
from mirror_lib.relay.run import plan_flow
from mirror_lib.runbook import fences, gates
from mirror_lib.runbook.context import Desk
from mirror_lib.runbook.model import Fence, Gate, Step
from mirror_lib.runbook.order import has_passed
from mirror_lib.runbook.outcome import Outcome
from mirror_lib.runbook.positions import copied_to
from mirror_lib.runbook.scope import LogEnds, log_ends, wave_topics
from mirror_lib.runbook.steps.before import belongs_together, preflight
from mirror_lib.topology.names import TopicPartition
from mirror_lib.verify.model import VerifyMode

_LOOK_SECONDS = 0.5
#: In the facts of the freeze: where the source ended when its word was taken, by topic and partition.
_ENDS = "source_ends"


def before_freeze(desk: Desk) -> Outcome:
    """Whether the writers may be stopped now: what is left to copy would not keep them waiting."""
    flow = desk.flow
    ends = log_ends(flow, desk.topics)
    lag = gates.lag_is_small(ends, copied_to(flow), desk.definition.max_lag)
    if not lag.passed and desk.engine is not None:
        desk.copy()
        ends = log_ends(flow, desk.topics)
        lag = gates.lag_is_small(ends, copied_to(flow), desk.definition.max_lag)
    # The rehearsal may be days ago.
    ready = (*preflight(desk).gates, belongs_together(desk))
    expected = desk.facts_of(Step.REHEARSE).get("expected_stop_seconds")
    told = Gate("duration", True, f"the writers will stand still for about {expected} s, and as long as people take.")
    return Outcome((*ready, lag, told) if expected is not None else (*ready, lag))


def while_waiting(desk: Desk) -> None:
    """Keep the copy close while a person stops the writers."""
    if desk.engine is not None:
        desk.copy()


def freeze(desk: Desk) -> Outcome:
    """The writers are stopped, a person says; the fence makes sure of it, when the definition asks for one."""
    gate = Gate("writers stopped", True, "a person has said so.")
    if desk.definition.fence is Fence.ACL:
        topics = [topic.source for topic in desk.topics]
        known = desk.facts_of(Step.FREEZE).get("fence", ())
        gate = fences.raise_fence(desk.whole_flow, topics, desk.definition.writers, known, desk.keep)
    ends: dict[str, list[int]] = {}
    for place, end in sorted(log_ends(desk.whole_flow, desk.topics).source.items()):
        ends.setdefault(place.topic, []).append(end)
    return Outcome((gate,), {_ENDS: ends})


def freeze_holds(desk: Desk) -> tuple[Gate, ...]:
    """Nobody has written to the source since the cut, or since the word that the writers are stopped."""
    if has_passed(desk.last.get(Step.DRAIN)):
        return gates.cut_holds(cuts(desk), log_ends(desk.whole_flow, desk.topics), target_too=False)
    # Cutovers of 0.1.0 have not noted it.
    noted = desk.facts_of(Step.FREEZE).get(_ENDS, {})
    then = {TopicPartition(topic, number): end for topic, ends in noted.items() for number, end in enumerate(ends)}
    return (gates.source_as_told(then, log_ends(desk.whole_flow, desk.topics)),)


def drain(desk: Desk) -> Outcome:
    """Rounds until everything is copied and the source has stood still for long enough; then note the cut."""
    wanted, began = desk.definition, desk.monotonic()
    ends = log_ends(desk.flow, desk.topics)
    still_since, rounds = desk.monotonic(), 0
    while True:
        if _is_behind(desk, ends):
            desk.tell(f"Round {rounds + 1} of the drain")
            desk.copy()
            rounds += 1
        now = log_ends(desk.flow, desk.topics)
        if now.source != ends.source:
            still_since = desk.monotonic()
            desk.tell("The source was still written to")
        ends = now
        still = desk.monotonic() - still_since
        if still >= wanted.still_seconds and not _is_behind(desk, ends):
            break
        if desk.monotonic() - began > wanted.drain_seconds:
            break
        desk.sleep(min(_LOOK_SECONDS, max(wanted.still_seconds - still, 0.01)))
    return _cut(desk, ends, still, rounds, desk.monotonic() - began)


def _is_behind(desk: Desk, ends: LogEnds) -> bool:
    return bool(ends.behind(copied_to(desk.flow)))


def _cut(desk: Desk, ends: LogEnds, still: float, rounds: int, seconds: float) -> Outcome:
    plan = plan_flow(desk.flow, desk.run_options(), desk.ledger)
    after = log_ends(desk.flow, desk.topics)
    # Somebody may have stopped a partition: then nothing is planned for it, and it is not copied all the same.
    waiting = {each.source for each in plan.partitions} | set(after.behind(copied_to(desk.flow)))
    problems = [f"{each.source}: {each.error.reason}" for each in plan.problems]
    if plan.stopped:
        problems.append(f"{plan.stopped:,} partitions that somebody decided not to replicate (`mirror gaps`)")
    long_enough = still >= desk.definition.still_seconds and after.source == ends.source
    found = (
        gates.topics_same(desk.topics, wave_topics(desk.flow, desk.definition.topics, desk.ledger)),
        *gates.everything_copied(after, waiting, problems),
        Gate(
            "source stands still",
            long_enough,
            f"nobody has written to the source for {still:.1f} s."
            if long_enough
            else f"somebody wrote to the source within the last {desk.definition.still_seconds:g} s.",
            "Stop the writers, and say so again.",
        ),
    )
    outcome = Outcome(
        found,
        {"rounds": rounds, "seconds": round(seconds, 3), "still_seconds": round(still, 3)},
        # The word that the writers are stopped was not so.
        undoes=None if long_enough else Step.FREEZE,
    )
    if outcome.passed:
        desk.ledger.cutovers.save_cuts(desk.definition.name, list(_cut_rows(desk, after)))
    return outcome


def _cut_rows(desk: Desk, ends: LogEnds) -> Iterable[CutRow]:
    now = desk.now()
    for topic in desk.topics:
        for source, target in topic.pairs:
            yield CutRow(
                cutover=desk.definition.name,
                topic=source.topic,
                partition=source.partition,
                target_topic=target.topic,
                source_end=ends.source[source],
                target_end=ends.target[source],
                cut_at=now,
            )


def cuts(desk: Desk) -> tuple[CutRow, ...]:
    """Where the partitions were cut."""
    return desk.ledger.cutovers.cuts(desk.definition.name)


def cut_holds(desk: Desk) -> tuple[Gate, ...]:
    """Both sides are as they were when they were cut."""
    return gates.cut_holds(cuts(desk), log_ends(desk.whole_flow, desk.topics), target_too=True)


def verify(desk: Desk) -> Outcome:
    """Compare all that was copied since it was last compared, up to the cut."""
    report = desk.compare(VerifyMode.RECENT)
    known = {(row.topic, row.partition): row.source_next for row in desk.ledger.verified_up_to(desk.definition.flow)}
    short = [
        f"{size.topic}-{size.partition}"
        for size in desk.ledger.map_sizes(desk.definition.flow)
        if any(size.topic == topic.source for topic in desk.topics)
        and known.get((size.topic, size.partition), -1) < size.source_next
    ]
    reaches = gates.counts(
        "compared up to the cut", short, "every partition was compared up to the end of its copy.", "Verify again."
    )
    facts = {"verification": report.verification_id, "records": report.records, "seconds": round(report.seconds, 3)}
    return Outcome((gates.is_equal(report), reaches, *cut_holds(desk)), facts)
