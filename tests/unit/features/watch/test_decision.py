"""When new records start a run of a flow, as a pure rule."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mirror_lib.features.watch.decision import (
    AGAIN_SECONDS,
    ANSWER_SECONDS,
    LONGEST_AGAIN_SECONDS,
    PAUSE_SECONDS,
    NewestRun,
    StartRule,
)
from mirror_lib.topology.names import TopicPartition

ONE, TWO = TopicPartition("t", 0), TopicPartition("t", 1)
OLD = NewestRun("old", is_active=False, has_succeeded=True, ended_ago=1000.0)


def ended(name: str, *, succeeded: bool = True, ago: float = 1.0) -> NewestRun:
    return NewestRun(name, is_active=False, has_succeeded=succeeded, ended_ago=ago)


def active(name: str) -> NewestRun:
    return NewestRun(name, is_active=True, has_succeeded=False)


def test_what_is_copied_starts_nothing_and_is_not_asked_again() -> None:
    started = StartRule()

    assert started.has_to_ask({ONE: 7, TWO: 0}, 0)
    assert started.starts({ONE: 7, TWO: 0}, OLD, lambda: {ONE: 7}, 0) == {}
    assert not started.has_to_ask({ONE: 7, TWO: 0}, 10_000)


def test_ends_that_are_not_those_of_the_copy_start_a_run() -> None:
    for ends, newest, copied, started in (
        # Records from before the trigger began.
        ({ONE: 7, TWO: 3}, OLD, {ONE: 5, TWO: 3}, {ONE: 7}),
        # A partition without a position, if it has records.
        ({ONE: 0}, None, {}, {}),
        ({ONE: 1}, None, {}, {ONE: 1}),
        # A log that has become shorter.
        ({ONE: 3}, OLD, {ONE: 5}, {ONE: 3}),
    ):
        assert StartRule().starts(ends, newest, lambda copied=copied: copied, 0) == started, (ends, copied)


def test_while_a_started_or_active_run_is_not_over_nothing_is_started() -> None:
    started = StartRule()
    assert started.starts({ONE: 1}, OLD, dict, 0)

    # Airflow has not begun it, then it is active, then it has ended before the last records came.
    assert not started.starts({ONE: 2}, OLD, dict, ANSWER_SECONDS - 1)
    assert not started.starts({ONE: 3}, active("new"), dict, ANSWER_SECONDS + 1)
    assert started.starts({ONE: 3}, ended("new"), lambda: {ONE: 2}, ANSWER_SECONDS + 2) == {ONE: 3}


def test_a_start_that_nothing_answers_is_repeated() -> None:
    started = StartRule()
    assert started.starts({ONE: 1}, OLD, dict, 0)

    assert started.starts({ONE: 1}, OLD, dict, ANSWER_SECONDS) == {ONE: 1}


def test_a_partition_that_cannot_be_copied_starts_a_run_for_each_change_and_others_after_growing_pauses() -> None:
    started = StartRule()
    assert started.starts({ONE: 1}, OLD, dict, 0)

    failed = ended("new", succeeded=False, ago=PAUSE_SECONDS)
    assert started.starts({ONE: 1}, failed, dict, 10) == {}
    assert not started.has_to_ask({ONE: 1}, 10 + AGAIN_SECONDS - 1)
    assert started.starts({ONE: 2}, failed, dict, 20) == {ONE: 2}
    now, pauses = 20.0, []
    for number in range(10):
        run = ended(f"run {number}", succeeded=False, ago=PAUSE_SECONDS)
        assert started.starts({ONE: 2}, run, dict, now) == {}
        pauses.append(next(each for each in PAUSES if started.has_to_ask({ONE: 2}, now + each)))
        now += pauses[-1]
        assert started.starts({ONE: 2}, run, dict, now) == {ONE: 2}
    assert pauses == [*PAUSES, *[LONGEST_AGAIN_SECONDS] * (10 - len(PAUSES))]


PAUSES = [AGAIN_SECONDS * factor for factor in (1, 2, 4, 8, 16, 32)] + [LONGEST_AGAIN_SECONDS]


def test_a_run_of_other_topics_settles_nothing() -> None:
    started = StartRule()
    assert started.starts({ONE: 1, TWO: 5}, OLD, lambda: {TWO: 4}, 0) == {ONE: 1, TWO: 5}

    assert started.starts({ONE: 1, TWO: 5}, ended("of two"), lambda: {TWO: 5}, 10) == {}
    assert started.starts({ONE: 1, TWO: 5}, ended("of two"), lambda: {TWO: 5}, 10 + AGAIN_SECONDS) == {ONE: 1}


def test_failing_runs_follow_each_other_with_a_pause_and_one_that_failed_in_the_future_delays_nothing() -> None:
    started = StartRule()

    assert not started.starts({ONE: 1}, ended("new", succeeded=False, ago=PAUSE_SECONDS - 1), dict, 0)
    assert started.starts({ONE: 1}, ended("new", succeeded=False, ago=PAUSE_SECONDS), dict, 1)
    assert StartRule().starts({ONE: 1}, ended("new", succeeded=False, ago=-3600.0), dict, 0) == {ONE: 1}


def test_without_a_ledger_changes_start_runs_with_a_pause() -> None:
    started = StartRule()

    assert started.starts_unseen({ONE: 1}, 0) == {ONE: 1}
    assert started.starts_unseen({ONE: 2}, PAUSE_SECONDS - 1) == {}
    assert started.starts_unseen({ONE: 2}, PAUSE_SECONDS) == {ONE: 2}
    assert started.starts_unseen({ONE: 2}, 3 * PAUSE_SECONDS) == {}


@given(ends=st.dictionaries(st.builds(TopicPartition, st.just("t"), st.integers(0, 5)), st.integers(0, 9)))
def test_a_flow_that_has_copied_everything_never_starts(ends: Mapping[TopicPartition, int]) -> None:
    started = StartRule()

    assert started.starts(ends, OLD, lambda: ends, 0) == {}
    assert started.changed(ends, 0) == []


class Watching(RuleBasedStateMachine):
    """A source, Airflow with one run at a time, and triggers that restart: no record waits for ever."""

    @initialize()
    def begin(self) -> None:
        self.ends, self.copied = dict.fromkeys((ONE, TWO), 0), dict.fromkeys((ONE, TWO), 0)
        self.rule, self.now, self.runs = StartRule(), 0.0, 0
        #: Airflow's queue has at most one entry of a DAG.
        self.queued, self.running = False, False

    @rule(partition=st.sampled_from((ONE, TWO)), count=st.integers(1, 3))
    def write(self, partition: TopicPartition, count: int) -> None:
        self.ends[partition] += count

    @rule()
    def poll(self) -> None:
        self.now += 2
        newest = active(f"{self.runs}") if self.running else ended(f"{self.runs}")
        if self.rule.starts(self.ends, newest, lambda: dict(self.copied), self.now):
            assert not self.running
            self.queued = True

    @precondition(lambda self: self.queued and not self.running)
    @rule()
    def run_begins(self) -> None:
        self.queued, self.running, self.runs = False, True, self.runs + 1
        self.planned = dict(self.ends)

    @precondition(lambda self: self.running)
    @rule()
    def run_ends(self) -> None:
        self.copied, self.running = self.planned, False

    @precondition(lambda self: self.running)
    @rule(partition=st.sampled_from((ONE, TWO)))
    def run_copies_one(self, partition: TopicPartition) -> None:
        """It fails halfway, or an operator has started it for one topic."""
        self.copied = {**self.copied, partition: self.planned[partition]}
        self.running = False

    @rule()
    def triggerer_restarts(self) -> None:
        self.rule = StartRule()

    @invariant()
    def all_is_copied_after_a_few_polls_and_pauses(self) -> None:
        if not hasattr(self, "ends"):
            return
        kept = self.rule, self.now, self.runs, self.queued, self.running, dict(self.copied)
        self.rule = StartRule()
        self.rule._settled, self.rule._started = dict(kept[0]._settled), kept[0]._started
        self.rule._again = dict(kept[0]._again)
        for _ in range(3):
            self.now += LONGEST_AGAIN_SECONDS
            if self.running:
                self.run_ends()
            self.poll()
            if self.queued:
                self.run_begins()
                self.run_ends()
        assert self.copied == self.ends
        self.rule, self.now, self.runs, self.queued, self.running, self.copied = kept


TestWatching = Watching.TestCase
