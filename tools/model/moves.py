"""Cutovers and failbacks, by the commands of the runbook, and their invariants when one of them is finished."""

from __future__ import annotations

import signal
import time

from tools.model.commands import LEASE_SECONDS, Point, Said
from tools.model.expected import ViolationError
from tools.model.restores import Restores
from tools.model.steps import COMPACTED_TOPIC

#: Steps that an operator confirms, and attempts after a kill, with a margin.
_ROUNDS = 8
_QUICK = ("--quiet-seconds", "0.3", "--drain-seconds", "4", "--watch-seconds", "0")
#: What the product says of a failure that may not come again: a lock that was lost on a busy machine, a timeout.
_TRY_AGAIN = 1
#: Of steps that ended with an error instead of a gate.
_REPEATS = 2
#: A pattern that matches no group.
_NOBODY = "nobody"


class Moves(Restores):
    """Rules that move writers and readers to the target, and back.

    A cutover is finished or rolled back, so between two steps all writers are on one side.
    """

    def _do_cutover(self, topic: str, groups: bool, at: str | None, nth: int) -> None:
        if topic not in self._moved and self._is_selected(topic):
            self._cut_over(topic, groups=groups, point=_point(at, nth))

    def _cut_over(self, topic: str, *, groups: bool, point: Point | None = None) -> bool:
        """Cut over; return True if writers and readers are at the target now."""
        self._cutovers += 1
        name = f"there-{self._cutovers}"
        who = ".*" if groups else _NOBODY
        words = ("--topics", self._topic(topic), "--groups", who, "--may-split", ".*", *_QUICK)
        if self._done("cutover", "new", name, *words).exit_code:
            return False
        finished = self._take_to_the_end(name, point)
        self._look()
        if not finished:
            self._take_back(name)
            return False
        self._check_moved(topic, groups=groups)
        self._take_over_partitions(topic)
        self._moved[topic] = name
        if groups:
            self._moved_groups.add(name)
        return True

    def _take_to_the_end(self, name: str, point: Point | None) -> bool:
        word: tuple[str, ...] = ()
        repeats = _REPEATS
        for number in range(_ROUNDS):
            said = self._command("cutover", "run", name, *word, flow=(), point=point if number == 0 else None)
            word = ()
            assert said is not None
            state, step = said.document.get("state"), said.document.get("step")
            self.said.append(f"     cutover {name}: {state} at {step}")
            if state == "finished":
                return True
            if state == "waiting":
                # The confirmation is given at the start of the process: none is waiting for it.
                word = ("--confirm", str(step))
            elif said.exit_code < 0 or said.exit_code == _TRY_AGAIN:
                time.sleep(LEASE_SECONDS + 0.5)
            elif _has_error(said) and repeats > 0:
                repeats -= 1
            else:
                self.said += [f"       {text}" for text in _failed(said)]
                return False
        raise ViolationError("stuck", f"cutover {name} does not come to an end")

    def _take_back(self, name: str) -> None:
        said = self._done("cutover", "rollback", name, "--yes", flow=())
        if said.exit_code:
            raise ViolationError("stuck", f"cutover rollback {name}: exit {said.exit_code} {said.text[-1000:]}")

    def _check_moved(self, topic: str, *, groups: bool) -> None:
        """Check that all source records are on the target, and that groups continue there at their source positions."""
        self._check_complete((topic,))
        for place, history in self._histories.items():
            if place[0] != topic:
                continue
            if place in self._given_up or (history.open and self._committed):
                text = f"cutover of {place}: finished, with a transaction open or the partition given up"
                raise ViolationError("cutover", text)
        if groups:
            self._check_readers((topic,), continues=True)

    def _take_over_partitions(self, topic: str) -> None:
        """Note that what other producers wrote to partitions that only the target has is copied home, too."""
        theirs = set(self._target.partitions(self._remote(topic))) - set(self._source.partitions(self._topic(topic)))
        for number in theirs:
            history, held = self._histories[topic, number], self._copy((topic, number)).held()
            history.compacted = topic == COMPACTED_TOPIC
            self._strangers -= {each.id for each in held}
            history.write_away(held)

    def _do_run_back(self, at: str | None, nth: int) -> None:
        """Copy back what was written to the target since."""
        if not self._moved:
            return
        said = self._command("run", flow=self._flow_back, point=_point(at, nth))
        self._read_sources()
        if said is not None and said.exit_code == 0:
            self._check_home(*self._moved)

    def _check_home(self, *topics: str) -> None:
        for place, history in self._histories.items():
            if place[0] in topics and history.away:
                text = f"{place}: {len(history.away)} records are not at home: {sorted(history.away)[:5]}"
                raise ViolationError("missing", text)

    def _do_failback(self, topic: str) -> None:
        if topic in self._moved:
            self._fail_back(topic)

    def _fail_back(self, topic: str, *, groups: bool = True) -> bool:
        """Fail back; return True if writers and readers are at the source again."""
        there = self._moved[topic]
        if groups:
            name = f"{there}-back-{self._cutovers}"
            said = self._done("cutover", "back", there, "--as", name, flow=())
        else:
            self._cutovers += 1
            name = f"home-{self._cutovers}"
            words = ("--topics", self._remote(topic).replace(".", "[.]"), "--groups", _NOBODY, *_QUICK)
            said = self._done("cutover", "new", name, *words, "--may-split", ".*", flow=self._flow_back)
        if said.exit_code:
            return False
        self._cutovers += 1
        finished = self._take_to_the_end(name, None)
        self._look()
        self._read_source(topic)
        if not finished:
            self._take_back(name)
            return False
        self._check_home(topic)
        del self._moved[topic]
        # The groups of a cutover without groups stayed at the source, where nothing was translated for them.
        if groups and there in self._moved_groups:
            self._check_readers((topic,), continues=True)
        return True


def _point(at: str | None, nth: int) -> Point | None:
    return None if at is None else Point(at, nth, signal.SIGKILL)


def _has_error(said: Said) -> bool:
    """Return True if the newest attempt ended with an error, after which its step can be repeated."""
    attempts = said.document.get("attempts") or [{}]
    return bool(attempts[-1].get("error"))


def _failed(said: Said) -> list[str]:
    """Return the failed gates, and the error, of the newest attempt."""
    attempts = said.document.get("attempts") or [{}]
    newest = attempts[-1]
    gates = [f"{each['name']}: {each['what']}" for each in newest.get("gates") or [] if not each["passed"]]
    return [*gates, *([str(newest["error"])] if newest.get("error") else [])]
