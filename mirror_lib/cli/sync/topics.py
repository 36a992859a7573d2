"""`mirror topics`: required changes of a flow's target topics, and applying them."""

from __future__ import annotations

import typer

from mirror_lib.cli.flow_options import ConfigOption, FlowOption, TopicsOption
from mirror_lib.cli.output import JsonOption, Output, report_errors
from mirror_lib.cli.sync.step import run_step
from mirror_lib.counted import counted
from mirror_lib.sync.topics import TopicSync, apply_flow_topics, plan_flow_topics

_app = typer.Typer(name="topics", help="Create missing target topics and partitions.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    app.add_typer(_app)


@_app.command()
def plan(config: ConfigOption, flow: FlowOption, topics: TopicsOption = None, as_json: JsonOption = False) -> None:
    """Show topics to create and partitions to add; changes nothing. Exit code 3 if a topic is blocked."""

    with report_errors(as_json) as output:
        _show(output, run_step(output, config, flow, topics, plan_flow_topics))


@_app.command()
def apply(config: ConfigOption, flow: FlowOption, topics: TopicsOption = None, as_json: JsonOption = False) -> None:
    """Create internal topics, target topics and missing partitions. Exit code 3 if a topic is blocked."""

    with report_errors(as_json) as output:
        _show(output, run_step(output, config, flow, topics, apply_flow_topics, progress="Setting up topics of"))


def show_topics(output: Output, done: TopicSync) -> None:
    """Show required or completed changes of a flow's topics; report errors of steps that the cluster rejected."""
    for topic in done.internal:
        output.note(f"internal topic {topic.name} on {topic.cluster}: {topic.state.value}")
    for step in (*done.plan.create, *done.plan.grow, *done.plan.conflicts):
        output.note(str(step))
    for notice in (*done.plan.about_undecided, *done.notices):
        output.note(notice)
    output.note(f"{counted(done.plan.unchanged, 'topic')} unchanged")
    for result in done.failures:
        if result.error is not None:
            output.error(result.error)


def _show(output: Output, done: TopicSync) -> None:
    output.exit_code = done.exit_code
    output.document(done.to_dict())
    show_topics(output, done)
