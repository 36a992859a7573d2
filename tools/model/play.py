"""Plays a sequence on the clusters, and lets everything settle at its end.

The checks (`model.expected`) use only the product's command line. A run of the whole flow that ends with 0 claims that
the copy is complete, and everything that stops a run can be decided.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tools.model.commands import Said
from tools.model.expected import ViolationError
from tools.model.moves import Moves
from tools.model.steps import LATE_TOPIC, TOPICS, Step, text_of

#: Reasons after which an operator sets the position.
_BY_POSITION = frozenset({"position-lost", "target-diverged", "unclean-start"})
_NOT_EMPTY = "target-not-empty"
#: Enough rounds for the remains of a killed run to expire, mainly its lock.
_SETTLING_ROUNDS = 8
#: Written to the target at the end of a sequence that ends with a cutover.
_LAST_RECORDS = 7


class Play(Moves):
    """One sequence with its own topics, files and ledger."""

    _ends: str | None = None

    def play(self, steps: Sequence[Step], done: Callable[[], None] = lambda: None) -> None:
        """Play all steps, then let everything settle.

        Raises:
            ViolationError: an invariant does not hold; its note says after which step.
        """
        for number, step in enumerate(steps):
            self.said.append(f"{number:3}  {text_of(step)}")
            try:
                with self._times.step(step["do"]):
                    self.step(step)
            except ViolationError as violation:
                violation.step = number
                violation.add_note(f"after step {number}: {text_of(step)}")
                raise
            done()
        try:
            with self._times.step("(comes to rest)"):
                self.settle()
        except ViolationError as violation:
            violation.add_note("while everything came to rest after the last step")
            raise

    def step(self, step: Step) -> None:
        """Play one step; the result is checked after it."""
        if step.get("topic") == LATE_TOPIC and LATE_TOPIC not in self._created and step["do"] != "create":
            step = {**step, "topic": TOPICS[0]}
        getattr(self, "_do_" + step["do"].replace("-", "_"))(**{key: step[key] for key in step if key != "do"})

    def settle(self) -> None:
        """Continue stopped commands; then the flow must reach a run that ends with 0, by the decisions that it names.

        Then the product and the model agree if both sides are equal, and nothing prevents a cutover.

        Raises:
            ViolationError: it does not.
        """
        self._clock = 0.0
        self._do_wake()
        if not self._moved:
            self._do_account()
            for topic in TOPICS:
                self._do_select(topic, "again")
        self._do_unhang(commit=True)
        if self._given_up:
            self._do_decide("resume")
        for topic in tuple(self._moved):
            self._come_home(topic)
        self._come_to_rest()
        # What the ledger lacks is unknown until the logs were read.
        complete = not self._ledger_restored or self._done("map", "rebuild", "--apply").exit_code == 0
        self._do_groups()
        self._verify("full", complete=complete)
        self._verify("state", complete=complete)
        if complete and self._ends is not None and self._ends not in self._moved and self._is_comparable(self._ends):
            self._go_and_come_back(self._ends)

    def _is_comparable(self, topic: str) -> bool:
        """Return True if a comparison of a topic must find it equal, so that a cutover must pass its rehearsal.

        False if operators have decided what is copied, other producers have written, or a position skips everything
        that a first start, as it is configured now, would copy.
        """
        return not any(
            place in self._decided
            or any(each.id in self._strangers for each in self._copy(place).held())
            or (not self._from_latest and not self._ever_copied[place] and history.present(committed=self._committed))
            for place, history in self._histories.items()
            if place[0] == topic
        )

    def _come_to_rest(self) -> None:
        last: Said | None = None
        for number in range(_SETTLING_ROUNDS):
            last = self._do_run()
            if last.exit_code == 0:
                return
            if self._same:
                self._delete_targets(last)
            if _NOT_EMPTY in last.reasons and not self._same:
                self._appends = True
                self._write_config()
                if self._positions_lost:
                    # Only the lost topic knew what a killed first run had copied: that is copied again.
                    for place in self._histories:
                        if any(self._means(each, place) for each in last.failures if each["reason"] == _NOT_EMPTY):
                            self._copy(place).restarts.append(self._copy(place).read_to)
            for each in last.failures:
                if each.get("reason") in _BY_POSITION:
                    topic = str(each["topic"]).removeprefix(self._name + "-")
                    self._do_position(topic, int(str(each["partition"])), "earliest")
            if last.exit_code == 3:
                self._do_decide("accept" if number % 2 == 0 and not self._same else "recopy")
        assert last is not None
        texts = [f"{each.get('reason')}: {each.get('what')} {each.get('action')}" for each in last.failures]
        raise ViolationError("stuck", "; ".join(texts) or last.text[-1000:])

    def _delete_targets(self, last: Said) -> None:
        """Delete the topics of what has failed: records have no other place there. The next run finds them gone."""
        named = {str(each.get("topic")).removeprefix(self._name + "-") for each in last.failures}
        for topic in sorted(named & {*TOPICS}):
            self._do_delete_target(topic, again=False)
        self._do_run()

    def _come_home(self, topic: str) -> None:
        for _ in range(_SETTLING_ROUNDS):
            # What was written to the source after the cutover stays there.
            if self._do_run().exit_code == 3:
                self._do_decide("accept")
            if self._fail_back(topic, groups=False):
                return
            # An unexpected record at home, with nothing to copy there, stops the rehearsal: continue after it, as the
            # gate says. Everything from here was copied home before.
            words = ("position", "set", "--topic", self._remote(topic), "--yes", "--to")
            said = self._done("run", flow=self._flow_back)
            if said.exit_code == 0:
                self._done(*words, "latest", flow=self._flow_back)
            for each in said.failures:
                # The same where a killed run back home left records to copy: up to that offset both sides are equal.
                if differs := re.search(r"does not match source offset (\d+)", str(each["what"])):
                    self._done(*words, differs[1], "--partition", str(each["partition"]), flow=self._flow_back)
        raise ViolationError("stuck", f"{topic} does not come home:\n" + "\n".join(self.said[-20:]))

    def _go_and_come_back(self, topic: str) -> None:
        if not self._cut_over(topic, groups=False):
            raise ViolationError("stuck", f"nothing is open, and {topic} is not moved:\n" + "\n".join(self.said[-20:]))
        self._do_produce(topic, 0, _LAST_RECORDS, "present", "none", 1)
        self._do_run_back(None, 1)
        if not self._fail_back(topic, groups=False):
            raise ViolationError("stuck", f"{topic} does not come home:\n" + "\n".join(self.said[-20:]))
        self._do_produce(topic, 0, _LAST_RECORDS, "present", "none", 1)
        self._come_to_rest()
        self._verify("full", complete=True)
