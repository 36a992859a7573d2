"""`mirror topics`: what a flow's target topics need, and doing it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mirror_lib.cli.output import JsonOption, Output, reporting

if TYPE_CHECKING:
    from mirror_lib.config.model import FlowConfig
    from mirror_lib.sync.flow_topics import TopicSync
    from mirror_lib.topology.selection import FlowTopology

_ConfigOption = Annotated[Path, typer.Option("--config", help="The MirrorMaker 2 properties file.", metavar="FILE")]
_FlowOption = Annotated[str, typer.Option("--flow", help="The flow, as SOURCE->TARGET.")]
_TopicsOption = Annotated[
    list[str] | None,
    typer.Option("--topics", help="Only source topics that match this Java regex; may be given several times."),
]

_app = typer.Typer(name="topics", help="Create missing target topics and partitions.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    app.add_typer(_app)


@_app.command()
def plan(config: _ConfigOption, flow: _FlowOption, topics: _TopicsOption = None, as_json: JsonOption = False) -> None:
    """Show what would be created or grown; changes nothing. Exit code 3 when something is in the way."""
    from mirror_lib.sync.flow_topics import plan_flow_topics

    with reporting(as_json) as output:
        settings, topology = _flow(config, flow, topics)
        with output.progress(f"Reading both clusters of {settings.flow}"):
            done = plan_flow_topics(settings, topology)
        _show(output, done)


@_app.command()
def apply(config: _ConfigOption, flow: _FlowOption, topics: _TopicsOption = None, as_json: JsonOption = False) -> None:
    """Create the internal topics, create and grow target topics. Exit code 3 when something is in the way."""
    from mirror_lib.sync.flow_topics import apply_flow_topics

    with reporting(as_json) as output:
        settings, topology = _flow(config, flow, topics)
        with output.progress(f"Setting up topics of {settings.flow}"):
            done = apply_flow_topics(settings, topology)
        _show(output, done)
        for result in done.failed:
            if result.error is not None:
                output.error(result.error)


def _flow(config: Path, flow: str, topics: list[str] | None) -> tuple[FlowConfig, FlowTopology]:
    from mirror_lib.config.flow_topology import flow_topology
    from mirror_lib.config.load import load
    from mirror_lib.relay.job import find_flow

    settings = find_flow(load(config), flow)
    topology = flow_topology(settings)
    return settings, topology.include_only(topics) if topics else topology


def _show(output: Output, done: TopicSync) -> None:
    output.exit_code = done.exit_code
    output.document(done.to_dict())
    for topic in done.internal:
        output.note(f"internal topic {topic.name} on {topic.cluster}: {topic.state.value}")
    for step in (*done.plan.create, *done.plan.grow, *done.plan.conflicts):
        output.note(str(step))
    output.note(f"{done.plan.unchanged} topics are as they should be")
