"""Cutovers that are interrupted, taken back or started twice, and fences: nothing stays behind that nobody knows of."""

from __future__ import annotations

import threading

import pytest

from mirror_lib.cluster.admin.client import ClusterAdmin
from mirror_lib.cluster.connection import Connection
from mirror_lib.config.model import ClientSettings
from mirror_lib.errors import ConfigurationError, RunLockedError
from mirror_lib.features.cutover import handover
from mirror_lib.features.cutover.context import CutoverContext
from mirror_lib.features.cutover.machine import Machine
from mirror_lib.features.cutover.model import CutoverDefinition, CutoverState, Fence, Step
from mirror_lib.features.cutover.steps import switch as steps_over
from mirror_lib.features.cutover.steps.rollback import roll_back
from mirror_lib.ledger.rows import GapRow, GapState
from mirror_lib.sync.acls.flow import plan_flow_acls
from mirror_lib.topology.acls import AclBinding, AclPermission, AclResource
from tests.support.cutovers import Migration, numbered
from tests.support.kafka import produce
from tests.support.waiting import wait_for

PARTITIONS = 2


class Killed(BaseException):
    """What a SIGKILL is to a test in one process: nothing behind it is done, and nobody hears of it."""


def copied_by_the_flow(moving: Migration, topic: str, first: int) -> int:
    """How many of ten new records the flow copies."""
    produce(moving.pair.source, topic, numbered(first, first + 10, PARTITIONS))
    return moving.there.run(sync=False).records


def acls(client: ClientSettings, topic: str) -> set[AclBinding]:
    with ClusterAdmin(Connection.from_settings(client)) as admin:
        return {acl for acl in admin.acls([AclResource.TOPIC]) if acl.name == topic}


def die_at_handover(moving: Migration, scope: CutoverDefinition, *, done: bool = True) -> None:
    """A process that is killed at the handover of a cutover: behind it, or before it."""
    apply = handover.apply

    def killed(context: CutoverContext, change: handover.Handover) -> None:
        if done:
            apply(context, change)
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(handover, "apply", killed)
        with pytest.raises(Killed):
            moving.run(scope)


@pytest.mark.parametrize("done", [False, True], ids=["before", "behind"])
def test_a_switch_that_died_around_the_handover_can_be_taken_back(
    moving: Migration, topic_name: str, done: bool
) -> None:
    scope = moving.define("scope", topic_name)
    moving.run_to_the_end(scope, until=Step.APPROVE)
    die_at_handover(moving, scope, done=done)

    roll_back(moving.context(scope))

    assert moving.where(scope).state is CutoverState.ROLLED_BACK
    assert not moving.ledger.handovers.handed_over()
    assert copied_by_the_flow(moving, topic_name, 100) == 10


def test_a_switch_that_died_goes_on_without_asking_anybody_again(moving: Migration, topic_name: str) -> None:
    scope = moving.define("scope", topic_name)
    moving.run_to_the_end(scope, until=Step.APPROVE)
    die_at_handover(moving, scope)

    assert moving.run(scope).state is CutoverState.FINISHED


def test_a_failback_that_stops_after_the_switch_goes_on_and_one_that_died_in_it_can_be_taken_back(
    moving: Migration, topic_name: str
) -> None:
    # Given a topic that has moved, and a failback that has switched
    moving.run_to_the_end(moving.define("scope", topic_name))
    produce(moving.pair.target, topic_name, numbered(100, 110, PARTITIONS))
    back = moving.fail_back("scope")
    moving.run_to_the_end(back, until=Step.APPROVE)
    die_at_handover(moving, back)

    # When it is taken back
    roll_back(moving.context(back))

    # Then the target leads as before: what is written there comes home, and nothing goes there
    assert [row.flow for row in moving.ledger.handovers.handed_over()] == ["A->B"]
    produce(moving.pair.target, topic_name, numbered(110, 120, PARTITIONS))
    assert moving.back.run(sync=False).records == 10
    again = moving.fail_back("scope", "home")
    moving.run_to_the_end(again, until=Step.SWITCH)
    assert moving.run(again).state is CutoverState.FINISHED
    assert copied_by_the_flow(moving, topic_name, 200) == 10


def test_a_release_that_died_behind_its_grants_goes_on_although_writers_have_begun(
    moving: Migration, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scope = moving.define("scope", topic_name)
    moving.run_to_the_end(scope, until=Step.SWITCH)

    def die(*_: object, **__: object) -> None:
        raise Killed

    monkeypatch.setattr(steps_over, "release_acls", die)
    with pytest.raises(Killed):
        moving.run(scope)
    monkeypatch.undo()
    produce(moving.pair.target, topic_name, numbered(100, 110, PARTITIONS))

    assert moving.run(scope).state is CutoverState.FINISHED


def test_an_agreement_about_an_earlier_cut_does_not_count(moving: Migration, topic_name: str) -> None:
    # Given a cutover that waits for agreement
    scope = moving.define("scope", topic_name)
    moving.run(scope)
    assert moving.run(scope, agrees_to=Step.FREEZE).step is Step.APPROVE

    # When a straggler writes, somebody agrees all the same, and everything is done once more
    produce(moving.pair.source, topic_name, numbered(100, 105, PARTITIONS))
    assert moving.run(scope, agrees_to=Step.APPROVE, by="bob").step is Step.FREEZE
    done = moving.run(scope, agrees_to=Step.FREEZE)

    # Then the new cut has to be agreed on
    assert (done.state, done.step) == (CutoverState.WAITING, Step.APPROVE)


def test_a_process_that_waits_for_a_person_keeps_a_second_one_off_and_ends_with_a_rollback(
    moving: Migration, topic_name: str
) -> None:
    scope = moving.define("scope", topic_name)
    waiting = threading.Thread(target=lambda: moving.run(scope, wait=120))
    waiting.start()
    wait_for(lambda: moving.where(scope).state is CutoverState.WAITING, 60)
    try:
        with pytest.raises(RunLockedError):
            Machine(moving.context(scope)).run()
    finally:
        roll_back(moving.context(scope))
        waiting.join(60)

    assert not waiting.is_alive()
    assert moving.where(scope).state is CutoverState.ROLLED_BACK
    with pytest.raises(ConfigurationError, match="rolled-back"):
        moving.run(scope)
    with pytest.raises(ConfigurationError, match="rolled-back"):
        roll_back(moving.context(scope))


def test_a_partition_that_somebody_stopped_keeps_the_writers_from_being_moved(
    moving: Migration, topic_name: str
) -> None:
    # Given a partition that is not replicated any more, with records that were never copied
    scope = moving.define("scope", topic_name, drain_seconds=2.0)
    moving.run_to_the_end(scope, until=Step.REHEARSE)
    stopped = GapRow(
        id="gap",
        flow="A->B",
        topic=topic_name,
        partition=0,
        cause="retention-gap",
        first_offset=0,
        next_offset=1,
        detail="stopped by hand",
        found_at=moving.context(scope).now(),
    )
    moving.ledger.record_gap(stopped)
    moving.ledger.decide_gap("gap", GapState.STOPPED, by="ann")
    produce(moving.pair.source, topic_name, numbered(100, 110, PARTITIONS))

    done = moving.run_to_the_end(scope)

    assert (done.state, done.step) == (CutoverState.FAILED, Step.DRAIN)
    assert not moving.ledger.handovers.handed_over()


class TestFence:
    """Writers that are kept out by ACLs of the source."""

    WRITER = "User:app"

    def fenced(self, moving: Migration, topic: str) -> CutoverDefinition:
        scope = moving.define("scope", topic, fence=Fence.ACL, writers=(self.WRITER,))
        moving.run_to_the_end(scope, until=Step.DRAIN)
        return scope

    def denied(self, moving: Migration, topic: str) -> set[str]:
        client = moving.config.flow("A->B").clients.source_admin
        return {acl.principal for acl in acls(client, topic) if acl.permission is AclPermission.DENY}

    def test_named_writers_are_kept_out_until_a_rollback_takes_away_what_every_attempt_put_there(
        self, moving: Migration, topic_name: str
    ) -> None:
        scope = self.fenced(moving, topic_name)
        assert self.denied(moving, topic_name) == {self.WRITER}
        # The target hears nothing of it.
        flow = moving.config.flow("A->B")
        plan = plan_flow_acls(flow, moving.context(scope).topology(), moving.ledger).plan
        assert not [acl for acl in plan.create if acl.name == topic_name]
        produce(moving.pair.source, topic_name, numbered(100, 105, PARTITIONS))
        moving.run_to_the_end(scope, until=Step.VERIFY)
        # Twice it was asked in vain, and twice with the word of a person.
        assert moving.last(scope, Step.FREEZE).number == 4

        roll_back(moving.context(scope))

        assert not self.denied(moving, topic_name)

    def test_a_failback_opens_what_the_cutover_has_closed(self, moving: Migration, topic_name: str) -> None:
        scope = self.fenced(moving, topic_name)
        moving.run_to_the_end(scope)
        assert self.denied(moving, topic_name) == {self.WRITER}

        moving.finish(moving.fail_back("scope"))

        assert not self.denied(moving, topic_name)
