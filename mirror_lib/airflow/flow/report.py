"""The text that the `report` task prints. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mirror_lib.past_runs.run_totals import TopicTotal, human_bytes, text_table
from mirror_lib.printable import printable

#: XCom key under which sync steps store their outcome, also when they are skipped or fail.
STEP_KEY = "step"
#: Counts of a step that are shown.
_COUNTS = ("changed", "created", "groups", "checkpoints", "commits", "unchanged")
#: Counts that are shown only if not zero.
_RARE_COUNTS = ("grown", "duplicates", "skipped_records", "skipped_denials")
_HEADER = ("topic", "target topic", "partitions", "records", "size", "seconds", "failed")
_PLAN_HEADER = ("topic", "target topic", "partitions", "offsets", "size")


def report_text(flow: str, outcome: Mapping[str, Any] | None, totals: Sequence[TopicTotal]) -> str:
    """Return the text about one run; `outcome` is `job_outcome.xcom_value`, None if the Spark job never ended."""
    if outcome is not None and outcome["dry_run"]:
        return _plan_text(flow, outcome)
    if outcome is not None and outcome.get("skipped") is not None and not totals:
        return f"Flow {flow}: {printable(outcome['skipped'])}"
    if outcome is None and not totals:
        return f"Flow {flow} copied nothing: the Spark job did not run, or was killed."
    if not totals:
        text = f"Flow {flow}: nothing was copied."
        if outcome is not None and not outcome["exit_code"]:
            text = f"Flow {flow}: no new records to copy."
    else:
        text = f"Flow {flow} copied {sum(total.records for total in totals):,} records:\n\n{_table(totals)}"
    return text + ("" if outcome is None else _skipped_text(outcome) + _problems("Not copied", outcome))


def steps_text(steps: Mapping[str, Mapping[str, Any] | None]) -> str:
    """Return a line for each sync step; None for one that stored no outcome."""
    return "Sync steps:\n" + "\n".join(f"- {name}: {_step_text(done)}" for name, done in steps.items())


def failed_steps(steps: Mapping[str, Mapping[str, Any] | None]) -> list[str]:
    """Return the tasks that did not do everything."""
    return [f"{name}: {_step_text(done)}" for name, done in steps.items() if done is None or done["failed"]]


def _step_text(done: Mapping[str, Any] | None) -> str:
    if done is None:
        return "failed, see the log of its task"
    if done.get("skipped") is not None:
        return f"skipped, {printable(done['skipped'])}"
    parts = [f"{done[count]:,} {count}" for count in _COUNTS if count in done]
    parts += [f"{done[name]:,} {name.replace('_', ' ')}" for name in _RARE_COUNTS if done.get(name)]
    parts += [f"{count:,} {reason}" for reason, count in done.get("reasons", {}).items()]
    if done["failed"]:
        parts.append(f"{done['failed']:,} failed: " + "; ".join(map(printable, done["problems"])))
    # Problems that fail nothing, such as clocks that differ, are shown too.
    notes = [*done.get("notices", ()), *(() if done["failed"] else done["problems"])]
    return "; ".join([", ".join(parts) or "done", *(f"note: {printable(note)}" for note in notes)])


def _skipped_text(outcome: Mapping[str, Any]) -> str:
    count = outcome.get("skipped_records", outcome.get("left_out", 0))  # former name: a run before an upgrade
    if not count:
        return ""
    places = outcome.get("skipped_ranges") or outcome["left_out_ranges"]  # former name
    return f"\n\nSkipped by mirror.poison.policy, {count:,} records:\n" + "\n".join(
        f"- {printable(place)}" for place in places
    )


def _problems(title: str, outcome: Mapping[str, Any]) -> str:
    problems = list(outcome["problems"])
    if not problems:
        return ""
    not_shown = outcome["failed"] - len(problems)
    more = [f"... and {not_shown} more"] if not_shown > 0 else []
    return f"\n\n{title}:\n" + "\n".join(f"- {printable(problem)}" for problem in [*problems, *more])


def _table(totals: Sequence[TopicTotal]) -> str:
    rows = [
        (
            total.topic,
            total.target_topic,
            str(total.partitions),
            f"{total.records:,}",
            human_bytes(total.bytes),
            f"{total.seconds:.1f}",
            str(total.failed or ""),
        )
        for total in totals
    ]
    return text_table(_HEADER, rows)


def _plan_text(flow: str, outcome: Mapping[str, Any]) -> str:
    planned = outcome["planned"]
    problems = _problems("Cannot be copied now (sync_topics creates missing topics and partitions)", outcome)
    if not planned:
        return f"Dry run of flow {flow}: no records can be copied now.{problems}"
    rows = [
        (
            str(topic["topic"]),
            str(topic["target_topic"]),
            str(topic["partitions"]),
            f"{topic['offsets']:,}",
            human_bytes(topic["estimated_bytes"]),
        )
        for topic in planned
    ]
    return (
        f"Dry run of flow {flow}, nothing was changed. A run would copy:\n\n{text_table(_PLAN_HEADER, rows)}{problems}"
    )
