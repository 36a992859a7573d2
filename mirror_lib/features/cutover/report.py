"""Text about a cutover: for logs, the console, and the approval page."""

from __future__ import annotations

from mirror_lib.features.cutover.machine import Progress
from mirror_lib.features.cutover.model import Attempt, CutoverState, Step, StepState
from mirror_lib.features.cutover.order import STEPS, has_passed, last_attempts, writers_stood_still
from mirror_lib.features.cutover.states.situation import INTERRUPTED, Situation
from mirror_lib.markdown_text import markdown_text
from mirror_lib.printable import printable

_MARKS = {
    StepState.PASSED: "passed",
    StepState.FAILED: "FAILED",
    StepState.WAITING: "waiting",
    StepState.RUNNING: "running",
    StepState.UNDONE: "undone",
}
_ASKED = {
    Step.FREEZE: "Stop the writers of these topics, then confirm",
    Step.APPROVE: "Check the gates, then approve",
}


def time_line(done: Progress) -> list[tuple[str, str, str, str]]:
    """Return step, state, seconds and findings, in the order of the steps."""
    last = last_attempts(done.attempts)
    return [(step.value, *_status_cells(last.get(step), done.present)) for step in STEPS[done.definition.style]]


def _status_cells(attempt: Attempt | None, present: Situation) -> tuple[str, str, str]:
    if attempt is None:
        return ("", "", "")
    seconds = "" if attempt.seconds is None else f"{attempt.seconds:.1f}"
    state = present.shown_step_state(attempt.state)
    mark = INTERRUPTED if state == INTERRUPTED else _MARKS[attempt.state]
    if attempt.error is not None:
        return (mark, seconds, f"{attempt.error['what']} {attempt.error.get('action', '')}".strip())
    failed = [gate for gate in attempt.gates if not gate.passed]
    return (mark, seconds, " ".join(_sentence(gate.what) for gate in failed or attempt.gates))


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def passed_steps(done: Progress) -> tuple[int, int]:
    """Return the number of passed steps, and of all steps."""
    last, steps = last_attempts(done.attempts), STEPS[done.definition.style]
    return sum(has_passed(last.get(step)) for step in steps), len(steps)


def sentence(done: Progress) -> str:
    """Return the progress, and what to do now."""
    name = done.definition.name
    if done.state is CutoverState.FINISHED:
        still = writers_stood_still(done.attempts)
        pause = "" if still is None else f"; the writers were stopped for {still:.1f} s"
        return f"Cutover {name} is finished{pause}."
    if done.state is CutoverState.ROLLED_BACK:
        return f"Cutover {name} was rolled back."
    return f"{done.present.who} {_next_action(done)}"


def _next_action(done: Progress) -> str:
    name, step, state = done.definition.name, done.step, done.present.state
    if state.question is not None:
        return f"{_ASKED[state.question]}: mirror cutover confirm {name} {state.question.value}"
    if not state.is_unattended:
        return "Wait until that process waits for an answer or ends."
    again = f"mirror cutover run {name}"
    or_by_airflow = ", or trigger its DAG with this name."
    if done.state is CutoverState.WAITING and step in _ASKED:
        return f"{_ASKED[step]}: {again} --confirm {step.value}"
    if done.state is CutoverState.FAILED:
        return f"Step {step.value} failed. Fix the cause, then continue: {again}{or_by_airflow}"
    return f"Continue: {again}{or_by_airflow}"


def progress_text(done: Progress) -> str:
    """Return all of it as text for a log."""
    lines = [
        f"{step:<10} {state:<18} {seconds:>8}  {printable(what)}" for step, state, seconds, what in time_line(done)
    ]
    return "\n".join([f"Cutover {done.definition.name} of flow {done.definition.flow}", *lines, sentence(done)])


def gates_markdown(done: Progress) -> str:
    """Return every gate of every step, for the approval page."""
    last = last_attempts(done.attempts)
    lines = [
        f"Cutover **{markdown_text(done.definition.name)}** of flow **{markdown_text(done.definition.flow)}**",
        "",
        "| step | gate | | finding |",
        "|---|---|---|---|",
    ]
    for step in STEPS[done.definition.style]:
        attempt = last.get(step)
        for gate in () if attempt is None else attempt.gates:
            mark = "✔" if gate.passed else "✘"
            lines.append(f"| {step.value} | {gate.name} | {mark} | {markdown_text(gate.what)} |")
    return "\n".join(lines)
