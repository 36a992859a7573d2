"""Chapter of moves: cutovers in all their states, a failback, a rollback, and topics handed over after a disaster."""

from __future__ import annotations

from typing import Any

from mirror_lib.copy.run_options import CopyRunner
from mirror_lib.errors import ReplicationError
from mirror_lib.features.cutover.context import Engine
from mirror_lib.features.cutover.machine import Machine, create
from mirror_lib.features.cutover.model import CutoverDefinition, CutoverState, Fence, Step, Style
from mirror_lib.features.cutover.opening import failback_of
from mirror_lib.features.cutover.report import gates_markdown, progress_text
from mirror_lib.features.cutover.steps.rollback import roll_back
from mirror_lib.ledger.handovers import load_flow_as_it_runs
from tests.stored_formats.scene import Scene
from tests.support.cutovers import HERE, IDENTITY, Migration, commit, numbered
from tests.support.flows import Flow
from tests.support.kafka import create_topic, produce, watermarks

SOURCE, TARGET = "old", "new"
FLOW, BACK = f"{SOURCE}->{TARGET}", f"{TARGET}->{SOURCE}"
PARTITIONS, COPIED = 2, 40
LOST_SOURCE, REFUGE = "home", "refuge"
DISASTER_FLOW = f"{LOST_SOURCE}->{REFUGE}"
_WRITER = "User:writer"
_NO_SPARK = "Spark did not start."
#: One topic for each cutover, so that none is in the way of another.
_TOPICS = ("defined", "rehearsed", "frozen", "failing", "moved", "returned", "undone", "fenced")


def _both_ways(there: str, back: str, topics: str) -> dict[str, str]:
    return {
        "replication.policy.class": IDENTITY,
        f"{back}.enabled": "true",
        f"{back}.topics": topics,
        f"{back}.mirror.failback": "true",
        "sync.group.offsets.enabled": "true",
        "emit.heartbeats.enabled": "false",
        "heartbeats.replication.enabled": "false",
        f"{there}.groups": "group-.*",
    }


def play(scene: Scene) -> None:
    """Everything of this chapter."""
    moving = _migration(scene)
    _define(scene, moving, "defined", Style.TOGETHER)
    _expect(scene, moving, "defined", CutoverState.RUNNING, Step.INVENTORY)
    _advance(scene, moving, "rehearsed", CutoverState.RUNNING, Step.REHEARSE, until=Step.REHEARSE)
    _advance(scene, moving, "frozen", CutoverState.WAITING, Step.FREEZE)
    _fail(scene, moving)
    _finish(scene, moving, "moved", style=Style.CONSUMERS_FIRST)
    _return(scene, moving)
    _roll_back(scene, moving)
    _finish(scene, moving, "fenced", style=Style.PRODUCERS_FIRST, fence=Fence.ACL, writers=(_WRITER,))
    scene.facts.add("fences", flow=FLOW, topic="fenced", principal=_WRITER)
    _hand_over_after_disaster(scene)


def _migration(scene: Scene) -> Migration:
    names = "|".join(_TOPICS)
    flow = scene.flow(SOURCE, TARGET, names, _both_ways(FLOW, BACK, names))
    for topic in _TOPICS:
        create_topic(scene.pair.source, topic, partitions=PARTITIONS)
        produce(scene.pair.source, topic, numbered(0, COPIED, PARTITIONS))
        commit(scene.pair.source, f"group-{topic}", topic, {0: 5, 1: 10})
    scene.run(flow, COPIED * len(_TOPICS))
    return _Moving(scene.pair, flow, scene.config(flow))


class _Moving(Migration):
    """As `Migration`, whose aliases are not A and B."""

    @property
    def back(self) -> Flow:
        _, config = load_flow_as_it_runs(self.there.path, BACK)
        return Flow(config, self.ledger, self.there.path)


def _define(scene: Scene, moving: Migration, topic: str, style: Style, **settings: Any) -> CutoverDefinition:
    # Groups differ as well, for a group belongs to one cutover at a time.
    groups = (f"group-{topic}",)
    definition = moving.define(f"move-{topic}", topic, flow=FLOW, style=style, groups=groups, **settings)
    _keep_definition(scene, definition, topic)
    return definition


def _keep_definition(scene: Scene, definition: CutoverDefinition, topic: str) -> None:
    scene.facts.add(
        "cutover_definitions",
        name=definition.name,
        flow=definition.flow,
        topic=topic,
        group=f"group-{topic}",
        style=definition.style.value,
        fence=definition.fence.value,
        quiet_seconds=0.5,
    )


def _expect(scene: Scene, moving: Migration, topic: str, state: CutoverState, step: Step, name: str = "") -> None:
    done = moving.where(moving.known(name or f"move-{topic}"))
    if (done.state, done.step) != (state, step):
        raise RuntimeError(f"{topic}: {done.state} at {done.step}\n{progress_text(done)}")
    scene.facts.add("cutovers", name=done.definition.name, state=state.value, step=step.value)


def _advance(
    scene: Scene, moving: Migration, topic: str, state: CutoverState, step: Step, *, until: Step | None = None
) -> None:
    """Take a cutover on until it needs somebody, or has passed a step; then it is at `step`."""
    moving.run(_define(scene, moving, topic, Style.TOGETHER), until=until)
    _expect(scene, moving, topic, state, step)


def _fail(scene: Scene, moving: Migration) -> None:
    """First Spark does not start, then somebody else has written to the target: no gate is passed."""
    definition = _define(scene, moving, "failing", Style.TOGETHER)
    moving.run(definition, until=Step.PREFLIGHT)
    produce(scene.pair.source, "failing", numbered(COPIED, COPIED + 2, PARTITIONS))
    Machine(moving.context(definition, Engine(copy=_no_spark, compare=HERE.compare))).run()
    _expect(scene, moving, "failing", CutoverState.FAILED, Step.REHEARSE)
    produce(scene.pair.target, "failing", numbered(900, 901, 1))
    moving.run(definition)
    _expect(scene, moving, "failing", CutoverState.FAILED, Step.REHEARSE)
    scene.facts.add("failed_steps", name=definition.name, step="rehearse", attempt=1, what=_NO_SPARK)


def _no_spark() -> CopyRunner:
    raise ReplicationError(_NO_SPARK, action="Start it.")


def _finish(scene: Scene, moving: Migration, topic: str, *, style: Style, **settings: Any) -> None:
    definition = _define(scene, moving, topic, style, **settings)
    produce(scene.pair.source, topic, numbered(COPIED, COPIED + 6, PARTITIONS))
    if style is Style.PRODUCERS_FIRST:
        # Readers have read the source to its end before they follow.
        commit(scene.pair.source, f"group-{topic}", topic, {0: 23, 1: 23})
    done = moving.run_to_the_end(definition)
    if done.state is not CutoverState.FINISHED:
        raise RuntimeError(progress_text(done))
    _expect(scene, moving, topic, CutoverState.FINISHED, Step.FINISH)
    scene.facts.add("handed_over", flow=FLOW, topic=topic, target_topic=topic, cutover=definition.name)
    _keep_cuts(scene, definition.name, topic)
    scene.outputs.setdefault("cutover-status.json", scene.call(moving.there, "cutover", "status", definition.name))
    scene.outputs.setdefault("cutover-gates.md", gates_markdown(done))


def _keep_cuts(scene: Scene, name: str, topic: str) -> None:
    for partition in range(PARTITIONS):
        scene.facts.add(
            "cuts",
            name=name,
            topic=topic,
            partition=partition,
            source_end=watermarks(scene.pair.source, topic, partition)[1],
            target_end=watermarks(scene.pair.target, topic, partition)[1],
        )


def _return(scene: Scene, moving: Migration) -> None:
    topic = "returned"
    definition = _define(scene, moving, topic, Style.TOGETHER)
    moving.run_to_the_end(definition)
    _expect(scene, moving, topic, CutoverState.FINISHED, Step.FINISH)
    produce(scene.pair.target, topic, numbered(COPIED, COPIED + 10, PARTITIONS))
    commit(scene.pair.target, f"group-{topic}", topic, {0: 22, 1: 24})
    back = failback_of(moving.config, moving.ledger, definition.name)
    create(moving.ledger, back, by="test", context=moving.context(back))
    done = moving.run_to_the_end(back)
    if done.state is not CutoverState.FINISHED:
        raise RuntimeError(progress_text(done))
    scene.facts.add("cutovers", name=back.name, state="finished", step="finish")
    scene.facts.add("failbacks", name=back.name, flow=BACK, topic=topic, of=definition.name)


def _roll_back(scene: Scene, moving: Migration) -> None:
    topic = "undone"
    definition = _define(scene, moving, topic, Style.TOGETHER)
    moving.run_to_the_end(definition, until=Step.SWITCH)
    gates = roll_back(moving.context(definition))
    if not all(gate.passed for gate in gates):
        raise RuntimeError(f"not rolled back: {gates}")
    done = moving.where(definition)
    scene.facts.add("cutovers", name=definition.name, state=CutoverState.ROLLED_BACK.value, step=done.step.value)
    scene.facts.add("taken_back", flow=FLOW, topic=topic)


def _hand_over_after_disaster(scene: Scene) -> None:
    """The source was lost with ten records and is back; meanwhile writers have been at the target."""
    topic = "tickets"
    settings = _both_ways(DISASTER_FLOW, f"{REFUGE}->{LOST_SOURCE}", topic)
    flow = scene.flow(LOST_SOURCE, REFUGE, topic, settings)
    create_topic(scene.pair.source, topic, partitions=PARTITIONS)
    produce(scene.pair.source, topic, numbered(0, COPIED, PARTITIONS))
    scene.run(flow, COPIED)
    produce(scene.pair.source, topic, numbered(COPIED, COPIED + 10, PARTITIONS))
    produce(scene.pair.target, topic, numbered(100, 120, PARTITIONS))
    scene.call_for_flow(
        flow, "cutover", "after-disaster", "--yes", "--note", "fire in the cellar", keep="after-disaster.json"
    )
    for partition in range(PARTITIONS):
        scene.facts.add(
            "gaps",
            flow=DISASTER_FLOW,
            topic=topic,
            partition=partition,
            cause="disaster",
            first_offset=COPIED // 2,
            next_offset=COPIED // 2 + 5,
            state="accepted",
            decided_by=scene.person,
            note="fire in the cellar",
        )
    scene.facts.add("handed_over", flow=DISASTER_FLOW, topic=topic, target_topic=topic, cutover="after a disaster")
    scene.facts.add("audits", flow=DISASTER_FLOW, action="after-disaster", subject=DISASTER_FLOW, by=scene.person)
    _, back = load_flow_as_it_runs(flow.path, f"{REFUGE}->{LOST_SOURCE}")
    scene.run(Flow(back, flow.ledger, flow.path), 20)
