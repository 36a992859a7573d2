"""Commands of operators and schedulers, and the invariants after each of them."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tools.model.commands import Command, Point, Said
from tools.model.expected import (
    Place,
    ViolationError,
    check_range,
    check_verdict,
    deletions,
    missing,
    outlived,
)
from tools.model.happenings import Happenings
from tools.model.steps import COMPACTED_TOPIC, TOPICS

_UNSELECTED, _DELETED = "no-longer-selected", "source-deleted"
_LOST_AT_SOURCE = frozenset({"retention-gap", "source-recreated", "source-truncated"})
#: A task that was stopped for more than five seconds checks the log before it sends; docs/reliability.md.
_LOOKS_AFTER_SECONDS = 6.0
#: Behind every offset.
_END = 1 << 60


class Operations(Happenings):
    """Rules that are commands of the product, except for cutovers."""

    _backfills = 0

    @property
    def _flow(self) -> tuple[str, str]:
        return "--flow", f"{self._alias}->target"

    @property
    def _flow_back(self) -> tuple[str, str]:
        return "--flow", f"target->{self._alias}"

    def _command(
        self, *words: str, flow: Sequence[str] | None = None, point: Point | None = None, spark: bool = False
    ) -> Said | None:
        """Run a command; return None if it was stopped.

        Args:
            flow: the arguments that name the flow; default: the flow to the target.
        """
        typed = [*words, "--config", str(self._config), *(self._flow if flow is None else flow), "--json"]
        with self._times.command():
            command = Command(
                typed,
                self._folder,
                point=point,
                without=self._without,
                spark=spark,
                ids=self._shown_ids,
                clock=self._clock,
            )
            said = command.finish()
        if said is None:
            self._stopped.append(command)
            self.said.append(f"     {' '.join(words)}: stopped")
        else:
            self._note(" ".join(words), said)
        return said

    def _done(self, *words: str, flow: Sequence[str] | None = None) -> Said:
        said = self._command(*words, flow=flow)
        assert said is not None
        return said

    def _note(self, what: str, said: Said) -> None:
        places = [f"{each.get('reason')} {each.get('topic')}:{each.get('partition')}" for each in said.failures]
        self.said.append(f"     {what}: exit {said.exit_code} {', '.join(places)}".rstrip())
        if said.exit_code not in (0, 1, 2, 3, -9) or "Traceback" in said.text:
            raise ViolationError("crashed", f"{what}: exit {said.exit_code}\n{said.text[-1500:]}")

    # ------------------------------------------------------------ runs

    def _do_run(self, spark: bool = False) -> Said:
        said = self._command("run", spark=spark and not (self._shown_ids or self._clock))
        assert said is not None
        self._after_run(said)
        return said

    def _burst(self, topic: str, count: int, age: str) -> None:
        for partition in range(2):
            self._do_produce(topic, partition, count, age, "none", 3)

    def _do_crash(self, at: str, nth: int, topic: str, burst: int, age: str) -> None:
        self._burst(topic, burst, age)
        said = self._command("run", point=Point(at, nth, signal.SIGKILL))
        if said is not None and said.exit_code >= 0:
            self._after_run(said)
        else:
            self._undecided = self._guarded
            self._look()

    def _do_stop(self, nth: int, topic: str, burst: int, age: str) -> None:
        """A run stops itself: just before it sends, or before it checks if it was stopped.

        Old records without transactions are not fenced between the two: docs/reliability.md.
        """
        self._burst(topic, burst, age)
        at = "before-produce" if self._guarded else "before-look"
        said = self._command("run", point=Point(at, nth, signal.SIGSTOP))
        if said is not None:
            self._after_run(said)
        else:
            self._undecided = self._guarded

    def _do_overtake(self, nth: int, topic: str, burst: int, age: str) -> None:
        """A run is stopped, and continues after its successor has taken over and not written yet."""
        self._do_stop(1, topic, burst, age)
        self._do_stop(nth, topic, burst, age)
        self._do_wake()

    def _do_wake(self) -> None:
        for each in self._stopped:
            if not self._guarded and each.stopped_at is not None:
                time.sleep(max(0.0, each.stopped_at + _LOOKS_AFTER_SECONDS - time.monotonic()))
            with self._times.command():
                said = each.wake()
            if said is None:
                each.kill()
            else:
                self._note("woken", said)
                # It may be the one that has found a loss, and no later run names it again.
                self._look()
                self._excuse_named(said)
        self._stopped = []
        self._look()
        self._look_at_former_names()

    def _after_run(self, said: Said) -> None:
        """Excuse what the run has named as lost; if it ended with 0 everything else must be there."""
        self._look()
        self._excuse_named(said)
        if said.exit_code == 0:
            self._undecided = False
            self._check_complete()
            present = {place for place in self._present() if place not in self._given_up}
            self._followed |= present
            self._meant -= present
            # An exclusion by name is meant, also when the patterns drop it later.
            self._meant |= {place for place in self._followed if place[0] in self._excluded}

    def _excuse_named(self, said: Said) -> None:
        for place, history in self._histories.items():
            if any(self._means(each, place) for each in said.failures if each.get("reason") in _LOST_AT_SOURCE):
                history.excused |= history.gone - self._copy(place).ids()
            if any(self._means(each, place) for each in said.document.get("deletions") or []):
                self._read_source(place[0])
                history.excused |= deletions(history)

    def _means(self, failure: dict[str, object], place: Place) -> bool:
        return failure.get("topic") == self._topic(place[0]) and failure.get("partition") in (None, place[1])

    def _present(self) -> set[Place]:
        """Return the partitions that the flow selects; `account` checks what is said about others."""
        selected = filter(self._is_selected, TOPICS)
        return {(topic, number) for topic in selected for number in self._source.partitions(self._topic(topic))}

    def _check_complete(self, topics: Sequence[str] = TOPICS) -> None:
        for topic in topics:
            self._read_source(topic)
        present = {place for place in self._present() if place[0] in topics}
        for place, history in self._histories.items():
            if place not in present or place in self._given_up:
                continue
            copy = self._copy(place)
            if not history.begun:
                # A flow that never had anything to copy there cannot detect a loss.
                skips = self._from_latest and not history.late
                history.excused |= ({each.id for each in history.records} if skips else history.gone) - copy.ids()
                history.begun = self._from_latest or history.read_to > self._starts.get(place, 0)
            lacking = missing(history, copy, committed=self._committed)
            if lacking:
                raise ViolationError(
                    "missing", f"{place}: a run ended with 0, and {len(lacking)} records are not there: {lacking[:5]}"
                )
        self._complete_once = True

    def _do_recreate_source(self, topic: str, runs: bool = False, partitions: int | None = None) -> None:
        """Delete a topic and create it again, possibly with a run in between, and with another number of partitions."""
        if topic in self._moved:
            return
        before = self._delete_source(topic)
        if runs:
            self._do_account()
        now = partitions or before
        self._source.create(self._topic(topic), now, self._configs(topic))
        for number in range(before, now):
            self._expect_new((topic, number), late=self._histories[topic, 0].begun)
        for number in range(now, before):
            self._histories[topic, number].excused |= self._histories[topic, number].gone

    # ------------------------------------------------------------ what is said about the rest

    def _do_select(self, topic: str, how: str) -> None:
        """Drop a topic from the patterns of the flow, exclude it by its name, or select it again."""
        if self._moved:
            return
        self._look()
        self._unmatched.discard(topic)
        self._excluded.discard(topic)
        if how != "again":
            (self._excluded if how == "exclude" else self._unmatched).add(topic)
        self._write_config()

    def _do_account(self) -> None:
        """Run, then plan: what left the selection and which copied records were not committed is named."""
        if self._do_run().exit_code:
            return
        said = self._done("plan")
        self._check_named(said)
        if not self._committed:
            self._check_counts(said)

    def _check_named(self, said: Said) -> None:
        present = self._present()
        left = {place for place in self._followed - present if place[0] not in self._excluded | self._moved.keys()}
        left -= self._given_up | self._meant
        named = set(self._places(said.document["unselected"]))
        gaps = self._done("gaps", "list").document["gaps"] if named | left else ()
        # One run notes a topic that was deleted after its copy, and no plan repeats it; that settles an open gap, too.
        settled = (gap for gap in gaps if gap["cause"] == _DELETED or "deleted at the source" in (gap["note"] or ""))
        noted = set(self._places(settled))
        if unnamed := sorted(left - named - noted):
            raise ViolationError("unnamed", f"{unnamed} were copied and are selected no longer; the plan names {named}")
        if wrong := sorted(named & present):
            raise ViolationError("unnamed", f"{wrong} are selected, and the plan says that they are not")
        stored = set(self._places(gap for gap in gaps if gap["cause"] == _UNSELECTED and gap["state"] == "open"))
        if unnamed := sorted(named - stored - noted):
            raise ViolationError("unnamed", f"the run has stored no gap of {unnamed}, which are selected no longer")

    def _check_counts(self, said: Said) -> None:
        """Check how many records of aborted and of open transactions are on the target, where nobody has decided."""
        told = {str(each["topic"]): each for each in said.document["copied_transactions"]}
        # A topic that was handed over to the target's writers is not the flow's any more.
        for topic in (each for each in TOPICS if self._is_selected(each) and each not in self._moved):
            counts = told.get(self._topic(topic), {"aborted": 0, "undecided": 0, "uncounted": 0})
            places = [place for place in self._histories if place[0] == topic]
            if counts["uncounted"] or any(self._is_recounted(place) for place in places):
                continue
            copied = {place: {each.id for each in self._copy(place).records} for place in places}
            aborted = sum(len(self._histories[place].aborted & ids) for place, ids in copied.items())
            opened = {(place, each) for place, transaction in self._open for each in transaction.ids}
            undecided = sum(each in copied.get(place, ()) for place, each in opened)
            unread = sum(len(self._histories[place].end_unread & ids) for place, ids in copied.items())
            if (counts["aborted"], counts["undecided"]) != (aborted - unread, undecided + unread):
                text = f"{topic}: {counts}, and the target has {aborted} aborted records, and {undecided} open ones"
                raise ViolationError("unnamed", text)

    def _is_recounted(self, place: Place) -> bool:
        return place in self._decided or place in self._given_up or self._histories[place].lost_target

    def _places(self, named: Iterable[Mapping[str, object]]) -> Iterator[Place]:
        for each in named:
            yield str(each["topic"]).removeprefix(self._name + "-"), int(str(each["partition"]))

    # ------------------------------------------------------------ decisions

    def _do_decide(self, how: str) -> None:
        self._look()
        said = self._done("gaps", how, "--all", "--yes")
        for made in said.document.get("decisions") or []:
            if made.get("error") is not None or not said.document.get("done"):
                continue
            place = (str(made["topic"]).removeprefix(self._name + "-"), int(made["partition"]))
            self._decided.add(place)
            if how == "accept" and place in self._followed - self._present():
                self._meant.add(place)
            history, copy = self._histories[place], self._copy(place)
            if how == "stop":
                self._given_up.add(place)
            elif how == "resume":
                self._given_up.discard(place)
            elif how == "accept":
                if self._ledger_restored:
                    # Groups are committed by what is known.
                    self._accepted_unknown.add(place)
                if history.undone:
                    # Where its source's histories part is not known: all that it has is copied again.
                    copy.restarts.append(copy.read_to)
                # Accepted: what was copied and no longer exists on the target, and what the source has lost, since a
                # killed run may have recorded the gap. What was never copied and exists must still be copied.
                history.excused |= (self._ever_copied[place] | history.gone) - copy.ids()
            elif made.get("new_position") is not None:
                self._begin_again(place, int(made["new_position"]))

    def _begin_again(self, place: Place, position: int) -> None:
        history, copy = self._histories[place], self._copy(place)
        copy.restarts.append(copy.read_to)
        copy.again_from = position
        history.excused |= history.gone - copy.ids()
        # Records that were deleted on the target are copied again too.
        history.excused -= {each.id for each in history.records if each.offset >= position} - history.gone

    def _do_position(self, topic: str, partition: int, to: str) -> None:
        """An operator sets a position by hand."""
        name, partition = self._place(topic, partition)
        self._look()
        if to == "middle":
            low, high, _ = self._source.read(name, {partition: 1 << 60})[partition]
            to = str((low + high) // 2)
        said = self._done("position", "set", "--topic", name, "--partition", str(partition), "--to", to, "--yes")
        if said.exit_code or not said.document.get("done"):
            return
        place = (topic, partition)
        history = self._histories[place]
        history.begun = True
        self._decided.add(place)
        self._begin_again(place, 0 if to == "earliest" else int(to) if to != "latest" else _END)
        if to != "earliest":
            before = history.records[: history.first_present] if to != "latest" else history.records
            passed_over = {each.id for each in history.records if to == "latest" or each.offset < int(to)}
            history.excused |= (passed_over | {each.id for each in before}) - self._copy(place).ids()

    def _do_delete_keys(self) -> None:
        """An operator writes the deletions that the source's cleaner removed before they were copied."""
        said = self._done("gaps", "delete-keys", "--topic", self._topic(COMPACTED_TOPIC), "--yes")
        self._look()
        self._read_source(COMPACTED_TOPIC)
        if said.exit_code or not self._is_selected(COMPACTED_TOPIC):
            return
        for place, history in self._histories.items():
            if not history.compacted or place in self._given_up:
                continue
            if alive := outlived(history, self._copy(place)):
                text = f"{place}: deletions were written, and {alive[:5]} live on the target"
                raise ViolationError("deletion", text)
            history.excused -= deletions(history)

    # ------------------------------------------------------------ another cluster behind an alias

    def _do_misaddress(self, which: str) -> None:
        """An alias of the flow names another cluster for a while: nothing may be accepted or written."""
        if not self._complete_once:
            return  # A flow that has nothing yet may begin there.
        wrong = {"target": self._source.servers} if which == "target" else {"source": self._target.servers}
        self._write_config(**wrong)
        self._check_refused(which)
        written = [name for name in self._source.topics("") if name in map(self._remote, TOPICS)]
        if which == "target" and written and self._separator is not None:
            raise ViolationError("cluster", f"topics {written} on a cluster that is not the flow's target")
        self._write_config()

    def _check_refused(self, which: str) -> None:
        for words in (("run",), ("groups", "apply")):
            said = self._command(*words)
            if said is not None and said.exit_code == 0:
                raise ViolationError("cluster", f"{words[0]} ended with 0 although {which} is another cluster")

    def _do_restore(self, which: str, at: str | None, nth: int, topic: str, burst: int, age: str) -> None:
        """A cluster is restored with another id, and an operator confirms that it holds the same; possibly after a
        kill.

        It must hold the same: a run comes first, since earlier events of topics would not be found afterwards.
        """
        if self._moved:
            return
        self._end_stopped()
        if self._do_run().exit_code:
            return
        if at is not None:
            self._do_crash(at, nth, topic, burst, age)
        self._next += 1
        cluster = self._source if which == "source" else self._target
        self._shown_ids[cluster.cluster_id()] = f"{self._name}-{self._next}"
        self._check_refused(which)
        # An existing failback flow has stored the id too.
        for flow in (self._flow, *([self._flow_back] if self._cutovers else [])):
            said = self._done("clusters", "accept", "--same", "--yes", flow=flow)
            if said.exit_code:
                raise ViolationError("stuck", f"clusters accept --same: exit {said.exit_code} {said.text[-1000:]}")
        self._do_run()

    def _do_resettle(self) -> None:
        """The target was rebuilt as another cluster, and an operator confirms that the flow begins anew there."""
        if self._moved:
            return
        self._end_stopped()
        self._spare.start()
        left, self._target, self._spare = self._target, self._spare, self._target
        self._write_config()
        if self._complete_once:
            self._check_refused("target")
        said = self._done("clusters", "accept", "--new", "--yes")
        if said.exit_code:
            raise ViolationError("stuck", f"clusters accept --new: exit {said.exit_code} {said.text[-1000:]}")
        for topic in self._own_topics(left):
            left.delete(topic)
        for history in self._histories.values():
            history.begun = history.late = False
            history.excused.clear()
        for known in (
            *(self._ever_copied, self._copies, self._present_ids, self._given_up, self._decided),
            *(self._followed, self._meant),
        ):
            known.clear()
        self._former_names.clear()
        self._complete_once = False

    # ------------------------------------------------------------ other commands

    def _do_backfill(self, topic: str, at: str | None, nth: int) -> None:
        """Copy the present source records once more, next to the flow's topic; possibly with a kill in between."""
        if topic in self._moved:
            return
        self._backfills += 1
        words = ["backfill", "run", "--topics", self._topic(topic), "--into-suffix", f".b{self._backfills}"]
        self._read_source(topic)
        if at is not None:
            self._command(*words, point=Point(at, nth, signal.SIGKILL))
        said = self._command(*words)
        if said is None or said.exit_code:
            return
        remote = f"{self._remote(topic)}.b{self._backfills}"
        for number, (_, _, found) in self._target.read(
            remote, dict.fromkeys(self._target.partitions(remote), 0)
        ).items():
            check_range(f"{remote}:{number}", self._histories[topic, number], found, committed=self._committed)

    def _do_verify(self, mode: str) -> None:
        self._verify(mode, complete=False)

    def _verify(self, mode: str, *, complete: bool) -> None:
        """Run a verification, and check its verdicts against the model.

        Args:
            complete: True if everything on the source was just copied.
        """
        said = self._done("verify", "--mode", mode, "--processes", "1")
        self._look()
        self._read_sources()
        for each in said.document.get("partitions") or []:
            place = (str(each["topic"]).removeprefix(self._name + "-"), int(each["partition"]))
            if place[0] not in TOPICS:
                continue
            check_verdict(
                f"{place} by {mode}",
                each,
                self._histories[place],
                self._copy(place),
                self._ever_copied[place],
                self._strangers,
                committed=self._committed,
                by_state=mode == "state",
                plain=place not in self._decided and place not in self._given_up,
                complete=complete,
            )
