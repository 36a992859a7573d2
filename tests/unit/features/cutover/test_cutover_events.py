"""Cutovers in a ledger, with processes that are killed, cleared, triggered twice and answered at any moment.

The table of states is the model. After each event the state that the ledger tells is compared with it; at the end
whoever carries it out takes what the message says, and the cutover ends.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from queue import Queue
from tempfile import mkdtemp
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from sqlalchemy import text

from mirror_lib.config.loader import load
from mirror_lib.config.model import MirrorConfig
from mirror_lib.copy.run_lock import LockHolder
from mirror_lib.errors import LedgerError, MirrorError, RunLockedError
from mirror_lib.features.cutover import machine
from mirror_lib.features.cutover.context import CutoverContext
from mirror_lib.features.cutover.machine import Machine, StepConfirmation, StepFunctions, create, progress
from mirror_lib.features.cutover.model import CutoverDefinition, Gate, Step, StepState
from mirror_lib.features.cutover.opening import failback_of
from mirror_lib.features.cutover.order import RELEASING, last_attempts
from mirror_lib.features.cutover.outcome import Outcome
from mirror_lib.features.cutover.report import sentence
from mirror_lib.features.cutover.states.cutover import Event, Refusal, State, after, choices
from mirror_lib.features.cutover.states.situation import RUN, answer, require, situation_of
from mirror_lib.features.cutover.steps import rollback
from mirror_lib.features.cutover.steps.rollback import roll_back
from mirror_lib.features.cutover.tables.carriers import Carriers
from mirror_lib.features.cutover.tables.cutovers import Cutovers
from mirror_lib.ledger.store import Ledger
from mirror_lib.ledger.tables.locks import lock_name
from tests.support.flow_files import write_flow
from tests.support.ledger.ledgers import ready_ledger
from tests.support.waiting import wait_for

WAVE = CutoverDefinition(name="scope", flow="A->B", topics=("orders",))
#: Short, so that a process that is sent away is succeeded soon; long enough for a machine that is busy.
LEASE_SECONDS = 10.0
PATIENCE_SECONDS = 60.0
WITH_FAILBACK = (
    "B->A.enabled = true",
    "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
    "B->A.mirror.failback = true",
)


class Killed(BaseException):
    """What ends a thread that stands for a process."""


class Mortal:
    """A ledger as a process sees it: once that is killed, nothing of it comes there any more."""

    def __init__(self, ledger: Ledger) -> None:
        self.dead = False
        self._ledger = ledger

    def __getattr__(self, name: str) -> Any:
        if self.dead:
            raise LedgerError("the process is dead.")
        return getattr(self._ledger, name)


class Process:
    """Carries a cutover out, or rolls it back, in a thread that stops wherever the test wants to interfere."""

    def __init__(self, ledger: Ledger, config: MirrorConfig, do: Callable[[Process], object]) -> None:
        self.point: str | None = None
        self.error: BaseException | None = None
        self.machine: Machine | None = None
        self.ledger = Mortal(ledger)
        self._arrived: Queue[str | None] = Queue()
        self._orders: Queue[str] = Queue()
        self._now = 0.0
        self.context = CutoverContext(
            definition=WAVE,
            config=config,
            ledger=cast("Ledger", self.ledger),
            by="marta",
            monotonic=lambda: self._now,
            sleep=lambda _: self._wait(),
        )
        self._thread = threading.Thread(target=self._run, args=[do], daemon=True)
        self._thread.start()
        self._arrive()

    @property
    def lost(self) -> bool:
        """Whether it could know by now that it has lost the cutover's lock."""
        lease = None if self.machine is None else self.machine._lease
        return lease is not None and lease.lost_error is not None

    @property
    def ended(self) -> bool:
        return self.point is None

    def go(self, order: str) -> None:
        """Let it go on to where it stops next."""
        self._orders.put(order)
        self._arrive()

    def kill(self) -> None:
        """As SIGKILL: nothing behind the point at which it is comes to pass."""
        self.ledger.dead = True
        self.go("die")
        assert self.ended

    def works(self, point: str) -> str:
        """Called by the process: stop here until the test says how it goes on."""
        self._arrived.put(point)
        order = self._orders.get(timeout=PATIENCE_SECONDS)
        if order == "die":
            raise Killed
        return order

    def _wait(self) -> None:
        if self.works("asks") == "time out":
            self._now += 1e6

    def _arrive(self) -> None:
        self.point = self._arrived.get(timeout=PATIENCE_SECONDS)
        if self.point is None:
            self._thread.join(PATIENCE_SECONDS)

    def _run(self, do: Callable[[Process], object]) -> None:
        try:
            do(self)
        except BaseException as error:
            self.error = error
        finally:
            self._arrived.put(None)


def _dead_holder() -> str:
    """A lock's holder on this host that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        child.wait()
    return str(replace(LockHolder.here(), pid=child.pid))


class CutoverEvents(RuleBasedStateMachine):
    """One cutover from its definition to its end."""

    place: Path
    dead_holder: str

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(mkdtemp(dir=self.place))
        self.config = load(write_flow(self.folder, *WITH_FAILBACK))
        self.url = f"sqlite:///{self.folder}/ledger.sqlite3"
        self.ledger = ready_ledger(self.url)
        self.process: Process | None = None
        self.expected = State.DEFINED
        #: What the step freeze finds when a process looks at the clusters again.
        self.source_grew = False
        self.with_word = False
        create(self.ledger, WAVE, by="marta", context=self.context())

    # ---------------------------------------------------------------- the world

    def happens(self, event: Event) -> None:
        """An event that the table allows."""
        then = after(self.expected, event)
        assert isinstance(then, State), f"{event} in {self.expected}: {then}"
        self.expected = then

    def is_refused(self, event: Event, attempt: Callable[[], object]) -> None:
        """An event that the table does not allow."""
        refusal = after(self.expected, event)
        assert isinstance(refusal, Refusal)
        with pytest.raises(MirrorError) as refused:
            attempt()
        assert refusal.reason in refused.value.what
        assert refused.value.action == refusal.do.format(name=WAVE.name)

    def start(self, confirmation: Step | None = None) -> None:
        freeze = last_attempts(progress(self.ledger, WAVE).attempts).get(Step.FREEZE)
        lapses = self.source_grew and freeze is not None and freeze.state is StepState.PASSED
        self.with_word = confirmation is not None and not lapses
        given = None if confirmation is None else StepConfirmation(confirmation, "ann")

        def carry_out(process: Process) -> object:
            process.machine = Machine(process.context, self.functions(process))
            return process.machine.run(wait_seconds=1000.0, confirmation=given)

        self.process = Process(self.ledger, self.config, carry_out)
        self.arrives()

    def functions(self, process: Process | None = None) -> StepFunctions:
        def work(step: Step) -> Callable[[CutoverContext], Outcome]:
            def do(context: CutoverContext) -> Outcome:
                assert process is not None
                if step is Step.RELEASE:
                    context.keep({RELEASING: True})
                order = process.works(step.value)
                gate = Gate("looked at", order == "pass", "it was looked at.", "Look again.")
                return Outcome((gate,), {"topics": []}, undoes=Step.FREEZE if order == "writer" else None)

            return do

        def holds(_: CutoverContext) -> tuple[Gate, ...]:
            grew, self.source_grew = self.source_grew, False
            return (Gate("no new source records", not grew, "the ends.", "Stop the writers."),)

        return StepFunctions(
            work={step: work(step) for step in Step},
            before_asking=dict.fromkeys((Step.FREEZE, Step.APPROVE), lambda _: Outcome(())),
            holds={Step.FREEZE: holds},
            while_waiting=lambda _: None,
        )

    def arrives(self) -> None:
        """Tell the model what a process did until it stopped where it is."""
        process = self.process
        assert process is not None
        if process.ended:
            self.process = None
            assert process.error is None, process.error
            done = progress(self.ledger, WAVE).state.value
            if self.expected.is_carried:
                self.happens(Event.FINISHES if done == "finished" else Event.LEAVES)
            return
        last = last_attempts(progress(self.ledger, WAVE).attempts)
        freeze = last.get(Step.FREEZE)
        is_given = freeze is not None and freeze.state is StepState.PASSED
        if self.expected is State.CUTTING and not is_given and (process.point != "freeze" or self.with_word):
            self.happens(Event.WORD_LAPSES)
        if process.point == "asks":
            if self.expected.question is None and self.expected in (State.PREPARING, State.CUTTING):
                self.happens(Event.ASKS)
        elif self.with_word and process.point in ("freeze", "approve"):
            # Asked, answered and taken at once.
            for event in (Event.ASKS, Event.YES, Event.TAKES):
                self.happens(event)
            self.with_word = False
        elif process.point == "release" and self.expected is State.CUTTING:
            self.happens(Event.RELEASES)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process = None
        with self.ledger.database.write() as connection:
            connection.execute(
                text("UPDATE run_lock SET holder = :dead WHERE flow = :flow"),
                {"dead": self.dead_holder, "flow": lock_name(WAVE.name)},
            )

    # ---------------------------------------------------------------- events

    @rule()
    def triggered(self) -> None:
        if isinstance(after(self.expected, Event.TRIGGER), State):
            self.happens(Event.TRIGGER)
            self.start()
        elif self.process is None:
            self.is_refused(Event.TRIGGER, lambda: Machine(self.context(), self.functions()).run())
        else:
            # A process would first wait for the lock's next renewal.
            self.is_refused(Event.TRIGGER, lambda: require(situation_of(self.ledger, WAVE.name), Event.TRIGGER))

    @rule(step=st.sampled_from([Step.FREEZE, Step.APPROVE]))
    def triggered_with_the_word(self, step: Step) -> None:
        if isinstance(after(self.expected, Event.TRIGGER_WITH_CONFIRMATION), Refusal):
            if self.process is None:
                run = Machine(self.context(), self.functions()).run
                self.is_refused(
                    Event.TRIGGER_WITH_CONFIRMATION, lambda: run(confirmation=StepConfirmation(step, "ann"))
                )
            return
        attempt = last_attempts(progress(self.ledger, WAVE).attempts).get(step)
        if attempt is None or attempt.state is not StepState.WAITING:
            with pytest.raises(MirrorError, match=f"does not wait for an answer to step {step.value}"):
                Machine(self.context(), self.functions()).run(confirmation=StepConfirmation(step, "ann"))
            return
        self.happens(Event.TRIGGER_WITH_CONFIRMATION)
        self.start(step)

    @rule(yes=st.booleans())
    def answered(self, yes: bool) -> None:
        event = Event.YES if yes else Event.NO
        step = self.expected.question
        if step is None:
            self.is_refused(event, lambda: answer(self.ledger, WAVE.name, Step.FREEZE, yes=yes, by="ann"))
            return
        answer(self.ledger, WAVE.name, step, yes=yes, by="ann")
        self.happens(event)

    @precondition(lambda self: self.expected.is_carried)
    @rule(steps=st.integers(1, 9))
    def goes_on(self, steps: int) -> None:
        for _ in range(steps):
            if self.process is None or self.expected in (State.ASKING_FREEZE, State.ASKING_APPROVE):
                return
            self.goes("pass")

    @precondition(lambda self: self.expected.is_carried)
    @rule(order=st.sampled_from(["fail", "writer"]))
    def a_gate_does_not_hold(self, order: str) -> None:
        assert self.process is not None
        if self.process.point == "asks":
            return
        if order == "writer":
            if self.process.point != "drain":
                return
            self.happens(Event.WORD_LAPSES)
        self.goes("fail" if order == "fail" else "writer")

    def goes(self, order: str) -> None:
        assert self.process is not None
        if self.expected in (State.FREEZE_ANSWERED, State.APPROVE_ANSWERED):
            self.happens(Event.TAKES)
        self.process.go(order)
        self.arrives()

    @precondition(lambda self: self.process is not None and self.process.point == "asks")
    @rule()
    def nobody_answers_in_time(self) -> None:
        if self.expected.question is None:
            return
        assert self.process is not None
        self.process.go("time out")
        self.happens(Event.TIME_OUT)
        self.arrives()

    @rule(event=st.sampled_from([Event.KILL, Event.MARK]))
    def its_process_ends(self, event: Event) -> None:
        if self.process is not None:
            self.kill()
        self.happens(event)

    @rule()
    def its_task_is_cleared(self) -> None:
        if self.expected.has_ended or self.expected.value.startswith("rolling-back"):
            return
        if self.process is not None:
            self.kill()
        self.happens(Event.CLEAR)
        self.start()

    @rule()
    def airflow_is_started_again(self) -> None:
        """What is not in the ledger is forgotten."""
        self.happens(Event.RESTART)
        with Ledger.open(self.url) as other:
            assert situation_of(other, WAVE.name).state is self.expected

    @precondition(lambda self: self.expected is State.STOPPED_FROZEN)
    @rule()
    def somebody_writes_to_the_source(self) -> None:
        self.source_grew = True

    @rule()
    def rolled_back(self) -> None:
        then = after(self.expected, Event.ROLL_BACK)
        if isinstance(then, Refusal):
            if self.expected.has_ended:
                self.is_refused(Event.ROLL_BACK, lambda: roll_back(self.context()))
            else:
                present = situation_of(self.ledger, WAVE.name)
                self.is_refused(Event.ROLL_BACK, lambda: require(present, Event.ROLL_BACK))
            return
        asking = self.process
        if asking is not None:
            # It is sent away, and ends before the other one has its lock.
            rollback._send_away(self.context())
            asking.go("pass")
            assert asking.ended
        self.happens(Event.ROLL_BACK)
        self.process = Process(self.ledger, self.config, self.undo)

    @staticmethod
    def undo(process: Process) -> object:
        def undo(_: CutoverContext) -> tuple[Gate, ...]:
            return (Gate("undone", process.works("undo") == "pass", "it was undone.", "Try again."),)

        return roll_back(process.context, undo=undo)

    @precondition(lambda self: self.process is not None and self.process.point == "undo")
    @rule(order=st.sampled_from(["pass", "fail"]))
    def it_is_undone(self, order: str) -> None:
        assert self.process is not None
        self.process.go(order)
        assert self.process.ended
        assert self.process.error is None
        self.process = None
        self.happens(Event.UNDOES if order == "pass" else Event.LEAVES)

    @rule()
    def brought_back(self) -> None:
        def define() -> CutoverDefinition:
            return failback_of(self.config, self.ledger, WAVE.name)

        if isinstance(after(self.expected, Event.BRING_BACK), Refusal):
            self.is_refused(Event.BRING_BACK, define)
        else:
            assert define().flow == "B->A"

    # ---------------------------------------------------------------- what holds

    @invariant()
    def the_ledger_tells_the_state_and_whoever_reads_learns_what_to_do(self) -> None:
        done = progress(self.ledger, WAVE)
        present, told = done.present, sentence(done)
        assert present.state is self.expected
        if present.question is not None:
            assert self.process is not None
            assert present.carrier is not None
            assert present.carrier.id == present.question.carrier
        if self.expected.is_unattended:
            assert "No process runs it" in told
            assert "mirror cutover run scope" in told
            assert ("the writers are stopped" in told) == self.expected.writers_wait
        elif not self.expected.has_ended:
            assert "by marta" in told

    def context(self) -> CutoverContext:
        return CutoverContext(definition=WAVE, config=self.config, ledger=self.ledger, by="marta")

    def teardown(self) -> None:
        """Whoever takes what the state offers comes to an end."""
        try:
            if self.process is not None:
                self.its_process_ends(Event.KILL)
            self.source_grew = False
            for _ in range(60):
                if self.expected.has_ended:
                    break
                if self.process is None:
                    assert Event.TRIGGER in choices(self.expected)
                    self.triggered()
                elif self.expected.question is not None:
                    self.answered(yes=True)
                else:
                    self.goes("pass")
            assert situation_of(self.ledger, WAVE.name).state is self.expected
            assert self.expected.has_ended
            carriers = Carriers(self.ledger).of(WAVE.name)
            assert all(each.ended_at is not None for each in carriers)
            assert not [each for each in Carriers(self.ledger).questions(WAVE.name) if each.ended_at is None]
            assert {each.kind for each in carriers} <= {RUN, "rollback"}
        finally:
            if self.process is not None:
                self.process.kill()
            self.ledger.close()
            shutil.rmtree(self.folder)


def test_a_process_that_has_lost_its_lock_stops_before_it_changes_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a process in the middle of a step, which was suspended for longer than its lease
    monkeypatch.setattr(machine, "_LEASE_SECONDS", 1.5)
    CutoverEvents.place, CutoverEvents.dead_holder = tmp_path, _dead_holder()
    cutover = CutoverEvents()
    cutover.triggered()
    process = cutover.process
    assert process is not None
    lock = cutover.ledger.lock_holder(lock_name(WAVE.name))
    cutover.ledger.acquire_lock(
        flow=lock_name(WAVE.name), run_id="other", holder="another", lease_seconds=60.0, instead_of=lock
    )
    before = Cutovers(cutover.ledger).steps(WAVE.name)

    # When it goes on
    wait_for(lambda: process.lost)
    process.go("pass")

    # Then it ends, and nothing that it found is kept
    assert isinstance(process.error, RunLockedError)
    assert Cutovers(cutover.ledger).steps(WAVE.name) == before
    cutover.ledger.close()


def test_whatever_happens_the_ledger_knows_who_acts_and_the_cutover_can_be_brought_to_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "_LEASE_SECONDS", LEASE_SECONDS)
    monkeypatch.setattr(rollback, "_LEASE_SECONDS", LEASE_SECONDS)
    CutoverEvents.place, CutoverEvents.dead_holder = tmp_path, _dead_holder()

    run_state_machine_as_test(
        CutoverEvents,
        settings=settings(
            max_examples=10,
            stateful_step_count=20,
            deadline=None,
            # A failure is told with its events; to shrink them takes minutes.
            phases=[Phase.generate],
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )
