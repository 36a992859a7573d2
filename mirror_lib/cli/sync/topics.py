"""`mirror topics`: required changes of a flow's target topics, and applying them."""

from __future__ import annotations

from mirror_lib.cli.commands import command_group
from mirror_lib.cli.flow_frame import FlowCommand, flow_command
from mirror_lib.cli.flow_options import TopicsOption
from mirror_lib.cli.frame import begin_with
from mirror_lib.cli.output import Output
from mirror_lib.counted import counted
from mirror_lib.sync.topics.flow import TopicSync, apply_flow_topics, plan_flow_topics

app = command_group("topics")


@app.command()
@begin_with(flow_command)
def plan(command: FlowCommand, topics: TopicsOption = None) -> None:
    """Show topics to create and partitions to add; changes nothing. Exit code 3 if a topic is blocked."""
    show_topics(command.output, command.carry_out(plan_flow_topics, topics), name=None)


@app.command()
@begin_with(flow_command)
def apply(command: FlowCommand, topics: TopicsOption = None) -> None:
    """Create internal topics, target topics and missing partitions. Exit code 3 if a topic is blocked."""
    done = command.carry_out(apply_flow_topics, topics, "Setting up topics of")
    show_topics(command.output, done, name=None)


def show_topics(output: Output, done: TopicSync, name: str | None = "topics") -> None:
    """Show required or completed changes of a flow's topics, and errors of steps that the cluster rejected.

    Args:
        name: of the result in the JSON document; None: the document has the result's own members.
    """
    output.exit_code = done.exit_code
    output.document(done.to_dict() if name is None else {name: done.to_dict()})
    for topic in done.internal:
        output.note(f"internal topic {topic.name} on {topic.cluster}: {topic.state.value}")
    for step in (*done.plan.create, *done.plan.grow, *done.plan.conflicts):
        output.note(str(step))
    for notice in done.warnings:
        output.note(notice)
    output.note(f"{counted(done.plan.unchanged, 'topic')} unchanged")
    for result in done.failures:
        if result.error is not None:
            output.error(result.error)
