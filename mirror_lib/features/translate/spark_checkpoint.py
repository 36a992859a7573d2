"""Translate the checkpoint folder of a Spark structured streaming query on Kafka to another cluster.

Formats as Spark 4.2 writes them, in the terms of its classes: `offsets/N` (`OffsetSeqLog`) has the line `v1`, a line of
metadata and one line for each source, or `v2` and lines with the source's name before a colon; `-` is a source without
an offset. A Kafka source's offset (`KafkaSourceOffset`) is {"topic":{"partition":offset}}, where -2 and -1 mean
earliest and latest. `sources/N/0` (`KafkaSourceInitialOffsetWriter`) is a zero byte, the line `v1`, and an offset.
`commits`, `metadata` and `state` contain no topics or offsets.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mirror_lib.errors import CheckpointFolderError
from mirror_lib.outside_json import parse_json
from mirror_lib.private_files import draft_of
from mirror_lib.topology.names import TopicPartition

#: Maps a source partition and an offset of it to the partition and the offset on the target. Without an offset only the
#: partition is used.
Translate = Callable[[TopicPartition, int | None], tuple[TopicPartition, int]]
#: Offsets of a Kafka source, by partition.
KafkaOffsets = dict[TopicPartition, int]

#: `KafkaOffsetRangeLimit`: earliest and latest.
_SYMBOLIC = (-2, -1)
_VOID = "-"
_COPIED_FILES = frozenset({"metadata"})
_COPIED_FOLDERS = frozenset({"commits", "state"})
_OFFSETS, _SOURCES = "offsets", "sources"
_NUMBER = re.compile(r"[0-9]{1,18}")
#: Files that an interrupted writer left (`CheckpointFileManager`); Spark never reads them.
_TEMPORARY = re.compile(r"\..*\.tmp(\.crc)?|_temporary|\._.*|\.DS_Store")
_INITIAL = b"\0v1\n"


@dataclass(frozen=True, slots=True)
class OffsetLog:
    """One file of `offsets`: the offsets of the sources when a batch was planned."""

    version: int
    #: A line of JSON, copied unchanged.
    metadata: str
    #: Each source's name in version 2, its number in version 1, with its offsets; None if it has none.
    sources: tuple[tuple[str, KafkaOffsets | None], ...]

    @classmethod
    def parse(cls, text: str) -> OffsetLog:
        """Read a file.

        Raises:
            ValueError: the version is unknown, or a source is not Kafka; the message names it.
        """
        lines = text.split("\n")
        if lines[0] not in ("v1", "v2") or len(lines) < 2:
            raise ValueError(f"it starts with {lines[0][:20]!r} instead of v1 or v2")
        version, metadata, offsets = int(lines[0][1:]), lines[1], lines[2:]
        if not offsets:
            raise ValueError("it has no source")
        if version == 1:
            named = [(str(number), line) for number, line in enumerate(offsets)]
        else:
            named = [_name_and_offset(line) for line in offsets]
        return cls(version, metadata, tuple((name, _of_source(name, line)) for name, line in named))

    def __str__(self) -> str:
        """The file's text."""
        offsets = [
            ("" if self.version == 1 else f"{name}:") + (_VOID if found is None else encode_offsets(found))
            for name, found in self.sources
        ]
        return "\n".join([f"v{self.version}", self.metadata, *offsets])


@dataclass(slots=True)
class RewrittenCheckpoint:
    """The result of a rewrite."""

    rewritten: list[str] = field(default_factory=list)
    copied: int = 0
    #: Offsets of the newest batch by source, on the original cluster: the query continues there, or repeats that batch.
    newest: dict[str, KafkaOffsets] = field(default_factory=dict)


def parse_offsets(text: str) -> KafkaOffsets:
    """A Kafka source's offset (`JsonUtils.partitionOffsets`).

    Raises:
        ValueError: the text is not such an offset.
    """
    try:
        data = parse_json(text)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict) or not all(isinstance(partitions, dict) for partitions in data.values()):
        raise ValueError(f"{text[:60]!r} is not the offset of a Kafka source")
    return {
        _partition(topic, partition): _offset(offset)
        for topic, partitions in data.items()
        for partition, offset in partitions.items()
    }


def encode_offsets(offsets: KafkaOffsets) -> str:
    """The inverse of `parse_offsets`."""
    topics: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        topics.setdefault(topic, {})[str(partition)] = offset
    return json.dumps(topics, separators=(",", ":"))


def parse_initial_offsets(data: bytes) -> KafkaOffsets:
    """A file of `sources/N`: the offsets at which the query started.

    Raises:
        ValueError: the data is not such a file.
    """
    if not data.startswith(_INITIAL):
        raise ValueError(f"it starts with {data[:4]!r} instead of the initial offsets of a Kafka source")
    return parse_offsets(data[len(_INITIAL) :].decode())


def translate_offsets(offsets: KafkaOffsets, translate: Translate) -> KafkaOffsets:
    """A source's offsets on the target.

    Raises:
        ValueError: two partitions map to the same one.
    """
    found: KafkaOffsets = {}
    for source, offset in offsets.items():
        target, there = translate(source, None if offset in _SYMBOLIC else offset)
        if target in found:
            raise ValueError(f"{source} and another partition both translate to {target}")
        found[target] = offset if offset in _SYMBOLIC else there
    return found


def read_newest(folder: Path) -> dict[str, KafkaOffsets]:
    """The offsets of the newest batch, by source.

    Raises:
        CheckpointFolderError: the folder cannot be translated.
    """
    logs = sorted(int(path.name) for path in _files(folder / _OFFSETS))
    if not logs:
        raise _folder_error(folder, folder / _OFFSETS, "it contains no batch")
    log = _parse(folder, folder / _OFFSETS / str(logs[-1]))
    return {name: offsets for name, offsets in log.sources if offsets is not None}


def rewrite_checkpoint(folder: Path, out: Path, translate: Translate) -> RewrittenCheckpoint:
    """Write a copy of a folder with which the query continues on the target. The query must not be running.

    Checksums (`.name.crc` of Hadoop, `name.crc` of Spark) of rewritten files are not copied: readers accept that.

    Args:
        folder: the checkpoint folder on a local disk.
        out: must not exist; it is created when it is complete.
        translate: may raise a `MirrorError`, which stops the rewrite.

    Raises:
        CheckpointFolderError: a file cannot be parsed; the error names it, and `out` is removed.
    """
    if out.exists():
        raise _folder_error(folder, out, "the folder already exists", action="Pass a folder that does not exist.")
    for path in folder.rglob("*"):
        # A link could lead to what only this user may read, and a device has no end.
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise _folder_error(folder, path, "it is neither a file nor a folder")
    done = RewrittenCheckpoint(newest=read_newest(folder))
    out.parent.mkdir(parents=True, exist_ok=True)
    with draft_of(out) as partial:
        for path in sorted(folder.iterdir()):
            _rewrite(folder, path, partial / path.name, translate, done)
    return done


def _rewrite(folder: Path, path: Path, to: Path, translate: Translate, done: RewrittenCheckpoint) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir() and path.name in _COPIED_FOLDERS:
        shutil.copytree(path, to)
        done.copied += sum(1 for each in to.rglob("*") if each.is_file())
    elif path.is_file() and _main_name(path) in _COPIED_FILES:
        shutil.copy2(path, to)
        done.copied += 1
    elif path.is_dir() and path.name == _OFFSETS:
        for file in _files(path):
            log = _parse(folder, file)
            _write(done, folder, file, to, str(_translated_log(folder, file, log, translate)).encode())
    elif path.is_dir() and path.name == _SOURCES:
        for source in sorted(each for each in path.iterdir() if not _TEMPORARY.fullmatch(each.name)):
            for file in _files(source):
                _write(done, folder, file, to / source.name, _initial(folder, file, translate))
    elif not _TEMPORARY.fullmatch(path.name):
        raise _folder_error(folder, path, "it is not part of a checkpoint of a Kafka query in a supported version")


def _translated_log(folder: Path, file: Path, log: OffsetLog, translate: Translate) -> OffsetLog:
    try:
        sources = tuple(
            (name, None if offsets is None else translate_offsets(offsets, translate)) for name, offsets in log.sources
        )
    except ValueError as error:
        raise _folder_error(folder, file, str(error)) from error
    return OffsetLog(log.version, log.metadata, sources)


def _initial(folder: Path, file: Path, translate: Translate) -> bytes:
    try:
        offsets = translate_offsets(parse_initial_offsets(file.read_bytes()), translate)
    except ValueError as error:
        raise _folder_error(folder, file, str(error)) from error
    return _INITIAL + encode_offsets(offsets).encode()


def _parse(folder: Path, file: Path) -> OffsetLog:
    try:
        return OffsetLog.parse(file.read_bytes().decode())
    except ValueError as error:
        raise _folder_error(folder, file, str(error)) from error


def _files(folder: Path) -> Iterator[Path]:
    """The files of a metadata log, which have numbers as names, without checksums and temporary files.

    Raises:
        CheckpointFolderError: the folder contains another file, or does not exist.
    """
    if not folder.is_dir():
        raise _folder_error(folder.parent, folder, "it is not a folder. The checkpoint of a query is a folder")
    for path in sorted(folder.iterdir()):
        if path.is_file() and _NUMBER.fullmatch(path.name):
            yield path
        elif not (_TEMPORARY.fullmatch(path.name) or _NUMBER.fullmatch(_main_name(path))):
            raise _folder_error(folder.parent, path, "a Spark log has no such file")


def _main_name(path: Path) -> str:
    """The name of the file that a checksum belongs to, possibly the checksum of a checksum."""
    name = path.name
    while name.endswith(".crc"):
        name = name.removesuffix(".crc").removeprefix(".")
    return name


def _write(done: RewrittenCheckpoint, folder: Path, file: Path, to: Path, content: bytes) -> None:
    to.mkdir(parents=True, exist_ok=True)
    (to / file.name).write_bytes(content)
    done.rewritten.append(str(file.relative_to(folder)))


def _name_and_offset(line: str) -> tuple[str, str]:
    name, colon, offset = line.partition(":")
    if not colon:
        raise ValueError(f"the line {line[:60]!r} has no source")
    return name, offset


def _of_source(name: str, line: str) -> KafkaOffsets | None:
    if line == _VOID:
        return None
    try:
        return parse_offsets(line)
    except ValueError as error:
        raise ValueError(f"source {name} cannot be translated: {error}") from error


def _partition(topic: Any, partition: str) -> TopicPartition:
    if not _NUMBER.fullmatch(partition):
        raise ValueError(f"{partition[:20]!r} is not a partition of {topic}")
    return TopicPartition(topic, int(partition))


def _offset(offset: Any) -> int:
    if type(offset) is not int or offset < min(_SYMBOLIC):
        raise ValueError(f"{offset!r} is not an offset")
    return offset


def _folder_error(folder: Path, path: Path, why: str, *, action: str = "") -> CheckpointFolderError:
    shown = path.relative_to(folder) if path.is_relative_to(folder) and path != folder else path
    return CheckpointFolderError(
        f"{shown} cannot be translated: {why}.",
        action=action or f"Nothing was written. Check that {folder} is the query's checkpointLocation.",
    )
