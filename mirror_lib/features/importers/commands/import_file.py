"""`mirror config import`: the settings of another replicator, as a file of this project."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from mirror_lib.cli import ForceOption, JsonOption, Output, read_bytes, report_errors
from mirror_lib.config import loader as load
from mirror_lib.config.model import Severity
from mirror_lib.errors import ConfigurationError
from mirror_lib.features.importers.commands.import_connectors import import_to_file
from mirror_lib.features.importers.commands.imported import (
    OutputOption,
    imported_settings,
    problems_of,
    read_standard_input,
    say,
    write_or_print,
)
from mirror_lib.features.importers.kinds import recognise
from mirror_lib.features.importers.mirror_maker1 import MirrorMaker1, all_topics_but, import_mirror_maker_1
from mirror_lib.features.importers.questions import Answers

if TYPE_CHECKING:
    from mirror_lib.features.importers.kinds import Recognised
    from mirror_lib.features.importers.mirror_maker1 import Imported

_Value = TypeVar("_Value")

_FilesArgument = Annotated[
    list[Path] | None,
    typer.Argument(
        help="Files to import; the kind is detected from the content. `-` or no file: standard input.",
        metavar="FILE",
        show_default=False,
    ),
]
# The dotted names are those of kafka-mirror-maker.sh, so that its command line can be reused unchanged.
# Lists, because a repeated option must not replace the first one silently.
_ConsumerOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--consumer.config", "--consumer-config", help="MirrorMaker 1: its consumer.properties.", metavar="FILE"
    ),
]
_ProducerOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--producer.config", "--producer-config", help="MirrorMaker 1: its producer.properties.", metavar="FILE"
    ),
]
_IncludeOption = Annotated[
    list[str] | None,
    typer.Option("--include", "--whitelist", help="MirrorMaker 1: its topic regex; a comma separates alternatives."),
]
_BlacklistOption = Annotated[
    list[str] | None,
    typer.Option(help="MirrorMaker 1: regex of the topics that it did not copy, instead of --include."),
]
_NewConsumerOption = Annotated[
    bool, typer.Option("--new.consumer", "--new-consumer", help="MirrorMaker 1: has no effect.")
]
_StreamsOption = Annotated[
    int,
    typer.Option("--num.streams", "--num-streams", min=1, help="MirrorMaker 1: number of streams; becomes tasks.max."),
]
_SourceOption = Annotated[str | None, typer.Option(help="MirrorMaker 1: alias for the cluster that it read from.")]
_TargetOption = Annotated[str | None, typer.Option(help="MirrorMaker 1: alias for the cluster that it wrote to.")]
_CommitOption = Annotated[
    str | None,
    typer.Option(
        "--offset.commit.interval.ms",
        "--offset-commit-interval-ms",
        help="MirrorMaker 1: becomes offset.flush.interval.ms.",
    ),
]
_AbortOption = Annotated[
    str | None,
    typer.Option("--abort.on.send.failure", "--abort-on-send-failure", help="MirrorMaker 1: reported with advice."),
]
_HandlerOption = Annotated[
    str | None, typer.Option("--message.handler", "--message-handler", help="MirrorMaker 1: reported with advice.")
]
_HandlerArgumentsOption = Annotated[
    str | None,
    typer.Option("--message.handler.args", "--message-handler-args", help="MirrorMaker 1: reported with advice."),
]
_ListenerOption = Annotated[
    str | None,
    typer.Option(
        "--consumer.rebalance.listener", "--consumer-rebalance-listener", help="MirrorMaker 1: reported with advice."
    ),
]
_ListenerArgumentsOption = Annotated[
    str | None,
    typer.Option("--rebalance.listener.args", "--rebalance-listener-args", help="MirrorMaker 1: reported with advice."),
]
_AnswerOption = Annotated[
    list[str] | None, typer.Option(help="Answer to a question of the import; repeatable.", metavar="QUESTION=ANSWER")
]
_SecretsOption = Annotated[str, typer.Option(help="Folder with the Kubernetes secrets, one subfolder per secret.")]


app = typer.Typer()


@app.command("import")
def import_settings(
    files: _FilesArgument = None,
    answer: _AnswerOption = None,
    secrets_folder: _SecretsOption = "/etc/mirror/secrets",
    output_file: OutputOption = None,
    force: ForceOption = False,
    consumer_config: _ConsumerOption = None,
    producer_config: _ProducerOption = None,
    include: _IncludeOption = None,
    blacklist: _BlacklistOption = None,
    source: _SourceOption = None,
    target: _TargetOption = None,
    num_streams: _StreamsOption = 1,
    offset_commit_interval_ms: _CommitOption = None,
    abort_on_send_failure: _AbortOption = None,
    message_handler: _HandlerOption = None,
    message_handler_args: _HandlerArgumentsOption = None,
    consumer_rebalance_listener: _ListenerOption = None,
    rebalance_listener_args: _ListenerArgumentsOption = None,
    new_consumer: _NewConsumerOption = False,
    as_json: JsonOption = False,
) -> None:
    """Convert connectors of Kafka Connect, resources of Strimzi, or files of MirrorMaker 1 to a properties file.

    Settings without effect here become comments with the reason. The file contains the passwords of its sources. Exit
    code 2 if it still has errors, 3 while a question is open: an option answers each question.
    """
    options = {
        "offset.commit.interval.ms": offset_commit_interval_ms,
        "abort.on.send.failure": abort_on_send_failure,
        "message.handler": message_handler,
        "message.handler.args": message_handler_args,
        "consumer.rebalance.listener": consumer_rebalance_listener,
        "rebalance.listener.args": rebalance_listener_args,
        "new.consumer": "" if new_consumer else None,
    }
    with report_errors(as_json) as output:
        answers = Answers.parse(answer or ())
        given = () if files is None and (consumer_config or producer_config) else _read_all(files)
        found = recognise(given, answers)
        if found.clusters:
            import_to_file(found.clusters, answers, secrets_folder, output_file, output, force=force, as_json=as_json)
            return
        answers.check_used()
        old = _mirror_maker_1(
            found,
            _only("--consumer.config", consumer_config),
            _only("--producer.config", producer_config),
            _topics(_only("--include", include), _only("--blacklist", blacklist)),
            num_streams,
            {name: value for name, value in options.items() if value is not None},
        )
        _import_mirror_maker_1(old, source, target, output_file, output, force=force, as_json=as_json)


def _only(option: str, values: Sequence[_Value] | None) -> _Value | None:
    if values and len(values) > 1:
        raise ConfigurationError(
            f"{option} was passed {len(values)} times.",
            action="Pass it once. If MirrorMaker 1 read several clusters, import each with its own --source and "
            "--output.",
        )
    return values[0] if values else None


def _topics(include: str | None, blacklist: str | None) -> str | None:
    if include is not None and blacklist is not None:
        raise ConfigurationError(
            "--include and --blacklist were both passed.", action="Pass the one that MirrorMaker 1 had."
        )
    return include if blacklist is None else all_topics_but(blacklist)


def _read_all(files: Sequence[Path] | None) -> tuple[tuple[str, bytes], ...]:
    """Return names and contents of the files; without any, of standard input."""
    if files is None and sys.stdin.isatty():
        raise ConfigurationError(
            "no input file.",
            action="Pass files as arguments, or pipe one: kubectl get kmm2 NAME -o yaml | mirror config import.",
        )
    standard_input = Path("-")
    return tuple(
        ("standard input", read_standard_input()) if path == standard_input else (path.name, read_bytes(path))
        for path in files or (standard_input,)
    )


def _mirror_maker_1(
    found: Recognised,
    consumer_config: Path | None,
    producer_config: Path | None,
    include: str | None,
    num_streams: int,
    options: Mapping[str, str],
) -> MirrorMaker1:
    consumer = found.consumer if consumer_config is None else read_bytes(consumer_config)
    producer = found.producer if producer_config is None else read_bytes(producer_config)
    missing = [
        name
        for name, value in (("--consumer.config", consumer), ("--producer.config", producer), ("--include", include))
        if value is None
    ]
    if consumer is None or producer is None or include is None:
        raise ConfigurationError(
            f"missing from the MirrorMaker 1 configuration: {' and '.join(missing)}.",
            action="Pass both files and the topic regex.",
        )
    return MirrorMaker1(consumer, producer, include, num_streams, tuple(options.items()))


def _import_mirror_maker_1(
    old: MirrorMaker1,
    source: str | None,
    target: str | None,
    output_file: Path | None,
    output: Output,
    *,
    force: bool,
    as_json: bool,
) -> None:
    if source is None or target is None:
        raise ConfigurationError(
            "MirrorMaker 1 files have no cluster aliases.", action="Pass them: --source primary --target backup."
        )
    imported = import_mirror_maker_1(old, source=source, target=target)
    write_or_print(imported.text, output_file, force=force, as_json=as_json)
    _show(output, imported, output_file, as_json=as_json)


def _show(output: Output, imported: Imported, path: Path | None, *, as_json: bool) -> None:
    """Report where every setting went, and the result of `mirror config check`; no secrets."""
    problems = problems_of(imported.text)
    errors = sum(problem.severity is Severity.ERROR for problem in problems)
    output.exit_code = 2 if errors else 0
    output.document(
        {
            "written": None if path is None else str(path),
            "group": imported.group,
            **imported_settings(imported.placed, imported.listed),
            "to_be_settled": list(imported.remarks),
            "problems": [load.describe(problem) for problem in problems],
        }
    )
    if not as_json:
        counts = f"{len(imported.placed)} settings imported, {len(imported.listed)} kept as comments with reasons."
        problem_lines = [load.describe(problem) for problem in problems]
        say([counts, *(f"To do: {remark}" for remark in imported.remarks), *problem_lines])
