"""`mirror transform`: the transforms of a flow's topics, and their effect on real records."""

from __future__ import annotations

from typing import Annotated

import typer

from mirror_lib.cli.flow_options import ConfigOption, FlowOption, TopicsOption, capped_table
from mirror_lib.cli.output import JsonOption, Output, report_errors
from mirror_lib.cli.transform.preflight import show_preflight
from mirror_lib.cli.transform.preview import Wanted, show_preview
from mirror_lib.config import FlowConfig, flow_topology
from mirror_lib.config.transforms import describe_transforms
from mirror_lib.ledger import load_flow_as_it_runs
from mirror_lib.relay.preview import SampleStart
from mirror_lib.sync import source_admin
from mirror_lib.transform import TopicPath, topic_paths

_app = typer.Typer(name="transform", help="The transforms of a flow.", no_args_is_help=True)

_TRANSFORM_COLUMNS = ("transform", "topics", "what", "the same result twice")
_PATH_COLUMNS = ("topic", "way", "why")
#: A single task: the sample is too small for more.
_MASTER = "local[1]"
_MOST_RECORDS = 1_000
_MOST_LOOKED_AT = 100_000


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    app.add_typer(_app)


@_app.command("list")
def list_transforms(
    config: ConfigOption,
    flow: FlowOption,
    topics: TopicsOption = None,
    offline: Annotated[bool, typer.Option("--offline", help="Read only the settings; connect to no cluster.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show the transforms of a flow in order, and the transforms that apply to each topic; changes nothing."""
    with report_errors(as_json) as output:
        _, settings = load_flow_as_it_runs(config, flow)
        output.document({"flow": str(settings.flow)})
        capped_table(output, "transforms", _TRANSFORM_COLUMNS, describe_transforms(settings.transforms))
        if not settings.transforms:
            output.note(f"Flow {settings.flow} has no transforms: every topic is copied unchanged.")
        if not offline:
            _show_paths(output, _paths(output, settings, topics or ()))


def _paths(output: Output, settings: FlowConfig, topics: list[str] | tuple[()]) -> tuple[TopicPath, ...]:

    topology = flow_topology(settings, topics)
    with output.progress(f"Listing the topics of {settings.flow.source}"), source_admin(settings) as admin:
        found = [topic for topic in admin.list_topics() if topology.replicates(topic)]
    return topic_paths(
        found, settings.transforms, topology.policy.is_heartbeats_topic, transactions=settings.transactions
    )


def _show_paths(output: Output, paths: tuple[TopicPath, ...]) -> None:
    # Topics with transforms first: the table is cut.
    order = sorted(paths, key=lambda path: (not path.transforms, path.topic))
    rows = [(path.topic, " -> ".join(path.transforms) or path.path.value, path.reason) for path in order]
    capped_table(output, "topics", _PATH_COLUMNS, rows)
    output.document({"topics": [path.to_dict() for path in paths]})
    through = sum(bool(path.transforms) for path in paths)
    output.note(f"{through:,} of {len(paths):,} topics are transformed.")


@_app.command()
def preview(
    config: ConfigOption,
    flow: FlowOption,
    topic: Annotated[str, typer.Option("--topic", help="Source topic.")],
    records: Annotated[
        int,
        typer.Option("--records", min=1, max=_MOST_RECORDS, help="Maximum number of records, across all partitions."),
    ] = 10,
    begin: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="PLACE",
            help="earliest, latest, an offset (with --partition), or a time such as 2026-01-31T00:00:00Z: the first "
            "records that are not older.",
        ),
    ] = "earliest",
    partition: Annotated[int | None, typer.Option("--partition", min=0, help="Only this partition.")] = None,
    master: Annotated[
        str, typer.Option("--master", help="Spark master URL, or address of a Spark Connect server (sc://...).")
    ] = _MASTER,
    as_json: JsonOption = False,
) -> None:
    """Show records of a source topic before and after its transforms; nothing is written to either cluster.

    Exit code 1 if a record cannot be transformed. Keys, values and headers are truncated; --json prints them in full.
    """
    with report_errors(as_json) as output:
        wanted = Wanted(topic, SampleStart.parse(begin), records, partition)
        _, settings = load_flow_as_it_runs(config, flow)
        show_preview(output, config.absolute(), settings, wanted, master)


@_app.command()
def preflight(
    config: ConfigOption,
    flow: FlowOption,
    topics: TopicsOption = None,
    records: Annotated[
        int,
        typer.Option(
            "--records",
            min=1,
            max=_MOST_LOOKED_AT,
            help="Maximum number of records to sample from each topic, across all partitions: the oldest and the "
            "newest.",
        ),
    ] = 1_000,
    register_missing: Annotated[
        bool, typer.Option("--register", help="Register missing schemas in the target's registry, then check again.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Look up the schema ids of sampled records in the registries of both sides; writes nothing without --register.

    Exit code 1 if a schema id does not resolve to the same schema on the target.
    """
    with report_errors(as_json) as output:
        _, settings = load_flow_as_it_runs(config, flow)
        show_preflight(output, settings, topics or (), records, registers=register_missing)
