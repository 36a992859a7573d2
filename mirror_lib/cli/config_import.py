"""`mirror config import`: the settings of another replicator, as a file of this program."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mirror_lib.cli.config_written import (
    ForceOption,
    OutputOption,
    masked,
    problems_of,
    read_bytes,
    say,
    write_or_print,
)
from mirror_lib.cli.output import JsonOption, Output, reporting

if TYPE_CHECKING:
    from mirror_lib.config.legacy import Imported

# The dotted names are those of kafka-mirror-maker.sh, so that its command line can be taken over as it is.
_ConsumerOption = Annotated[
    Path, typer.Option("--consumer.config", "--consumer-config", help="Its consumer.properties.", metavar="FILE")
]
_ProducerOption = Annotated[
    Path, typer.Option("--producer.config", "--producer-config", help="Its producer.properties.", metavar="FILE")
]
_IncludeOption = Annotated[
    str, typer.Option("--include", "--whitelist", help="Its regex of topics; a comma stands for an alternative.")
]
_StreamsOption = Annotated[
    int, typer.Option("--num.streams", "--num-streams", min=1, help="Its streams, which become tasks.max.")
]
_SourceOption = Annotated[str, typer.Option("--source", help="A name for the cluster that it read.")]
_TargetOption = Annotated[str, typer.Option("--target", help="A name for the cluster that it wrote to.")]
_CommitOption = Annotated[
    str | None,
    typer.Option(
        "--offset.commit.interval.ms", "--offset-commit-interval-ms", help="Becomes offset.flush.interval.ms."
    ),
]
_AbortOption = Annotated[
    str | None, typer.Option("--abort.on.send.failure", "--abort-on-send-failure", help="Listed with advice.")
]
_HandlerOption = Annotated[str | None, typer.Option("--message.handler", "--message-handler", help="The same.")]
_HandlerArgumentsOption = Annotated[
    str | None, typer.Option("--message.handler.args", "--message-handler-args", help="The same.")
]
_ListenerOption = Annotated[
    str | None, typer.Option("--consumer.rebalance.listener", "--consumer-rebalance-listener", help="The same.")
]
_ListenerArgumentsOption = Annotated[
    str | None, typer.Option("--rebalance.listener.args", "--rebalance-listener-args", help="The same.")
]


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command("import")(import_settings)


def import_settings(
    consumer_config: _ConsumerOption,
    producer_config: _ProducerOption,
    include: _IncludeOption,
    source: _SourceOption,
    target: _TargetOption,
    num_streams: _StreamsOption = 1,
    offset_commit_interval_ms: _CommitOption = None,
    abort_on_send_failure: _AbortOption = None,
    message_handler: _HandlerOption = None,
    message_handler_args: _HandlerArgumentsOption = None,
    consumer_rebalance_listener: _ListenerOption = None,
    rebalance_listener_args: _ListenerArgumentsOption = None,
    output_file: OutputOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Make a file of this program from MirrorMaker 1's: its options, and a name for each cluster.

    What has no effect here stands in the file as a comment with the reason. The file holds the passwords that the old
    ones held. Exit code 2 when it still has errors, which are told.
    """
    from mirror_lib.config.legacy import MirrorMaker1, import_mirror_maker_1

    options = {
        "offset.commit.interval.ms": offset_commit_interval_ms,
        "abort.on.send.failure": abort_on_send_failure,
        "message.handler": message_handler,
        "message.handler.args": message_handler_args,
        "consumer.rebalance.listener": consumer_rebalance_listener,
        "rebalance.listener.args": rebalance_listener_args,
    }
    with reporting(as_json) as output:
        old = MirrorMaker1(
            consumer=read_bytes(consumer_config),
            producer=read_bytes(producer_config),
            include=include,
            num_streams=num_streams,
            options=tuple((name, value) for name, value in options.items() if value is not None),
        )
        imported = import_mirror_maker_1(old, source=source, target=target)
        write_or_print(imported.text, output_file, force=force, as_json=as_json)
        _tell(output, imported, output_file, as_json=as_json)


def _tell(output: Output, imported: Imported, path: Path | None, *, as_json: bool) -> None:
    """Where everything went, and what `mirror config check` says of the result; no secrets."""
    from mirror_lib.config import load
    from mirror_lib.config.model import Severity

    problems = problems_of(imported.text)
    errors = sum(problem.severity is Severity.ERROR for problem in problems)
    output.exit_code = 2 if errors else 0
    output.document(
        {
            "written": None if path is None else str(path),
            "group": imported.group,
            "placed": [
                masked(each.name, each.value, {"from": each.origin, "key": each.key}) for each in imported.placed
            ],
            "listed": [
                masked(each.name, each.value, {"from": each.origin, "reason": each.reason}) for each in imported.listed
            ],
            "to_be_settled": list(imported.remarks),
            "problems": [load.describe(problem) for problem in problems],
        }
    )
    if not as_json:
        counts = f"{len(imported.placed)} settings have a place, {len(imported.listed)} are comments with reasons."
        problem_lines = [load.describe(problem) for problem in problems]
        say([counts, *(f"To be settled: {remark}" for remark in imported.remarks), *problem_lines])
