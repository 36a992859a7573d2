"""`mirror translate`: target offsets of source offsets, by the exact offset map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from mirror_lib.cli import FlowCommand, Output, begin_with, capped_errors, capped_table, flow_command, not_compared
from mirror_lib.config.first_start import parse_time
from mirror_lib.config.model import FlowConfig
from mirror_lib.counted import counted
from mirror_lib.errors import ClusterError, ConfigurationError
from mirror_lib.features.translate.lookup import (
    FlowMaps,
    Translation,
    landing_counts,
    source_offsets_at,
    translate_checkpoint,
    translate_group,
)
from mirror_lib.identity.histories import History
from mirror_lib.identity.ledger_positions import compared_positions
from mirror_lib.identity.positions import position_snapshot
from mirror_lib.ledger.location import open_ledger
from mirror_lib.ledger.store import Ledger
from mirror_lib.topology.flow_topology import FlowTopology
from mirror_lib.topology.names import TopicPartition

_COLUMNS = ("topic", "partition", "source offset", "target topic", "target offset", "landing", "duplicates")


app = typer.Typer()


@app.command()
@begin_with(flow_command)
def translate(
    command: FlowCommand,
    topic: Annotated[str | None, typer.Option(help="Source topic.")] = None,
    partition: Annotated[int | None, typer.Option(min=0, help="Partition of the topic.")] = None,
    offset: Annotated[list[int] | None, typer.Option(min=0, help="Offset to translate; repeatable.")] = None,
    timestamp: Annotated[
        list[str] | None,
        typer.Option(help="Time (epoch ms or ISO 8601): the first source record that is not older; repeatable."),
    ] = None,
    to_source: Annotated[bool, typer.Option("--to-source", help="Translate target offsets to source offsets.")] = False,
    group: Annotated[str | None, typer.Option(help="Translate all committed offsets of this consumer group.")] = None,
    checkpoint_folder: Annotated[
        Path | None, typer.Option(help="Checkpoint folder of a Spark Structured Streaming query.", metavar="PATH")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Output folder for the translated checkpoint.", metavar="PATH")
    ] = None,
) -> None:
    """Translate offsets with the exact offset map: of a partition, a time, a group, or a Spark checkpoint folder.

    One of these: --topic and --partition with --offset (and --to-source) or --timestamp; --group; --checkpoint-folder
    with --out.

    Result per offset: `exact`; `hole` (the record was not copied; the next copied record is returned); `before` (the
    map starts later); `beyond` (not copied yet). Exit code 3 if a partition has no map or a folder is not a checkpoint
    of a supported version.
    """
    of_partition = bool(offset or timestamp)
    _check_choice(
        (of_partition, group is not None, checkpoint_folder is not None),
        complete=(not of_partition or (topic is not None and partition is not None))
        and ((checkpoint_folder is None) == (out is None))
        and not (to_source and (timestamp or not offset)),
    )
    output, settings = command.output, command.settings
    with open_ledger(command.file) as ledger:
        not_compared(output, settings, ledger)
        topology = command.topology()
        maps = FlowMaps(settings, topology, ledger, _histories(output, settings, topology.with_moved_topics(), ledger))
        if group is not None:
            _group(output, settings, maps, group)
        elif checkpoint_folder is not None and out is not None:
            _checkpoint(output, maps, checkpoint_folder, out)
        elif topic is not None and partition is not None:
            _partition(output, settings, maps, topic, partition, offset or [], timestamp or [], to_source=to_source)


def _histories(
    output: Output, settings: FlowConfig, topology: FlowTopology, ledger: Ledger
) -> Mapping[TopicPartition, History] | None:
    """What the ledger lacks; None, with a sentence, while the target is lost: then the map is all there is."""
    try:
        return compared_positions(
            settings.flow, ledger, lambda: position_snapshot(settings, patient=False), topology.replicates
        )[1]
    except ClusterError as error:
        output.note(f"Whether the ledger has the newest map was not compared with the positions: {error.what}")
        return None


def _check_choice(ways: tuple[bool, ...], *, complete: bool) -> None:
    if sum(ways) != 1 or not complete:
        raise ConfigurationError(
            "no offsets are selected, or in more than one way.",
            action="Pass either --topic and --partition with --offset (and --to-source) or --timestamp, or --group, or "
            "--checkpoint-folder with --out.",
        )


def _partition(
    output: Output,
    settings: FlowConfig,
    maps: FlowMaps,
    topic: str,
    partition: int,
    offsets: list[int],
    times: list[str],
    *,
    to_source: bool,
) -> None:
    source = TopicPartition(topic, partition)
    # Refuses a topic that the flow has never copied, before the source is read.
    maps.target_of(source)
    milliseconds = [parse_time(time) for time in times]
    rows = [maps.to_source(source, each) if to_source else maps.to_target(source, each) for each in offsets]
    if milliseconds:
        with output.progress(f"Reading offsets of {len(times)} timestamps on {settings.flow.source}"):
            found = source_offsets_at(settings, source, milliseconds)
        rows += [maps.to_target(source, each) for each in found]
    _show(output, rows)


def _group(output: Output, settings: FlowConfig, maps: FlowMaps, group: str) -> None:
    with output.progress(f"Reading group {group} on {settings.flow.source}"):
        found = translate_group(settings, maps, group)
    output.document({"group": group, "not_replicated": list(found.foreign)})
    _show(output, found.rows)
    output.values("landings", landing_counts(found.rows))
    output.note(
        f"{counted(len(found.rows), 'partition')}; duplicates on failover: at most "
        f"{counted(sum(row.duplicates for row in found.rows), 'record')}, read by the group before they were copied."
    )
    if found.foreign:
        output.note(f"Not replicated by the flow: {', '.join(found.foreign)}.")
    capped_errors(output, [each.error for each in found.untranslated])
    output.exit_code = max((each.error.exit_code for each in found.untranslated), default=0)
    _warn(output, found.rows)


def _checkpoint(output: Output, maps: FlowMaps, folder: Path, out: Path) -> None:
    with output.progress(f"Translating {folder}"):
        done = translate_checkpoint(maps, folder, out)
    output.document({"out": str(out), "rewritten": done.folder.rewritten, "copied": done.folder.copied})
    _show(output, done.newest)
    output.values("landings", landing_counts(done.newest))
    output.note(
        f"{out}: {counted(len(done.folder.rewritten), 'file')} translated, {done.folder.copied:,} copied. Start the "
        "query from this folder with the target's bootstrap servers and target topic names."
    )
    ahead = sum(row.duplicates for row in done.newest)
    if ahead:
        output.note(
            f"The query is ahead of the copy: it would re-read up to {counted(ahead, 'record')}. Run the flow, then "
            "translate the folder again."
        )
    _warn(output, done.newest)


def _warn(output: Output, rows: Sequence[Translation]) -> None:
    missing = [row for row in rows if row.may_miss]
    if missing:
        output.note(
            f"{counted(len(missing), 'partition translates', 'partitions translate')} to an offset before the map, on "
            "a target that started earlier. If the ledger was ever lost, records would be skipped: run "
            "`mirror map rebuild` first."
        )
        output.exit_code = 3


def _show(output: Output, rows: list[Translation] | tuple[Translation, ...]) -> None:
    cells = [tuple(row.to_dict().values()) for row in rows]
    capped_table(output, "translations", _COLUMNS, cells)
