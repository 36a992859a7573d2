"""`mirror configs`: the desired configs of a flow's remote topics, and applying them."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from mirror_lib.cli.commands import command_group
from mirror_lib.cli.flow_frame import FlowCommand, flow_command
from mirror_lib.cli.flow_options import TopicsOption, capped_errors, capped_table
from mirror_lib.cli.frame import begin_with
from mirror_lib.cli.output import Output
from mirror_lib.counted import counted
from mirror_lib.sync.configs.flow import ConfigSync, apply_flow_configs, plan_flow_configs
from mirror_lib.sync.configs.plan import ConfigDrift

app = command_group("configs")

_CHANGE_COLUMNS = ("topic", "config", "operation", "now", "then", "rule")
_DRIFT_COLUMNS = ("config", "source", "target", "wins", "rule", "topics", "such as")


@app.command()
@begin_with(flow_command)
def plan(command: FlowCommand, topics: TopicsOption = None) -> None:
    """Show the changes, and differences between source and target with the side that wins; changes nothing."""
    _show(command.output, command.carry_out(plan_flow_configs, topics))


@app.command()
@begin_with(flow_command)
def apply(command: FlowCommand, topics: TopicsOption = None) -> None:
    """Apply the source's topic configs to the remote topics."""
    _show(command.output, command.carry_out(apply_flow_configs, topics, "Changing topic configs of"))


def _show(output: Output, done: ConfigSync) -> None:
    output.exit_code = done.exit_code
    rows = [
        (change.topic, step.name, step.operation.value, step.old, step.new, step.rule.value)
        for change in done.plan.changes
        for step in change.steps
    ]
    capped_table(output, "changes", _CHANGE_COLUMNS, rows)
    capped_table(output, "drift", _DRIFT_COLUMNS, _fold_topics(done.plan.drift))
    # The tables are for the console; programs get the plan itself.
    output.document(done.to_dict())
    for notice in done.notices:
        output.note(notice)
    output.note(f"{counted(done.plan.unchanged, 'topic')} unchanged")
    if done.plan.not_created:
        output.note(
            f"{counted(done.plan.not_created, 'topic is', 'topics are')} missing on the target: create them "
            "with `mirror topics apply`"
        )
    capped_errors(output, done.errors)


def _fold_topics(drift: tuple[ConfigDrift, ...]) -> list[tuple[Any, ...]]:
    """Return the same difference on many topics as one row; only those that stay, since changes are shown
    separately.
    """
    topics: dict[tuple[Any, ...], list[str]] = defaultdict(list)
    for row in drift:
        if not row.planned:
            topics[row.name, row.source_value, row.target_value, row.winner.value, row.rule.value].append(row.topic)
    return [(*key, len(named), named[0]) for key, named in sorted(topics.items(), key=lambda item: str(item[0]))]
