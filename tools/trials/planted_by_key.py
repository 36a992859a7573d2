"""Faults in copies with another number of partitions, which are compared by their keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tests.support.kafka import Record, create_topic
from tools.trials.model import Expected, Finding, Kind, Offsets, joined
from tools.trials.planter import SMALL, write, write_source
from tools.trials.records import Shape, changed, foreign
from tools.trials.scene import Copy, Scene, Trial

_SOURCES, _TARGETS = 2, 3
_COUNT = 1_500


@dataclass(slots=True)
class _Writing:
    """The copy as far as it is made: records by partition, and what is wrong with them."""

    place: Callable[[Record], int]
    partitions: dict[int, list[Record]] = field(default_factory=lambda: {each: [] for each in range(_TARGETS)})
    findings: list[Finding] = field(default_factory=list)
    equal: int = 0

    def right(self, record: Record) -> None:
        """Copy a record."""
        self._append(record)
        self.equal += 1

    def wrong(self, kind: Kind, source: Record | None, target: Record | None, parts: tuple[str, ...] = ()) -> None:
        """Write a record that is wrong, or leave one out."""
        there = None if target is None else self._append(target)
        self.findings.append(Finding(kind, 1, None if source is None else _at(source), there, parts))

    def either(self) -> None:
        """The last record that was wrong may also be the one before it."""
        last = self.findings[-1]
        assert last.target is not None
        target = replace(last.target, first=last.target.first - 1)
        self.findings[-1] = replace(last, target=target, within=True)

    def _append(self, record: Record) -> Offsets:
        partition = self.place(record)
        mine = self.partitions[partition]
        mine.append(replace(record, partition=partition))
        return Offsets(partition, len(mine) - 1, len(mine) - 1)


def _at(record: Record) -> Offsets:
    return Offsets(record.partition, record.offset or 0, record.offset or 0)


def by_key(scene: Scene) -> Copy:
    """Every key has a partition of its own; one record of each kind of fault, in both partitions of the source."""

    def place(record: Record) -> int:
        return sum(record.key or b"") % _TARGETS

    shape = Shape(keys=40)
    _write_source(scene, shape)
    copy = _Writing(place)
    late: Record | None = None
    for each in scene.written():
        number = each.offset or 0
        if number == 200:
            copy.wrong(Kind.MISSING, each, None)
        elif number == 400:
            copy.wrong(Kind.CHANGED, each, changed(each, "value"), ("value",))
        elif number == 600:
            copy.right(each)
            copy.wrong(Kind.REPEATED, each, each)
        elif number == 800:
            late = each
        elif number == 840 and late is not None:
            # The next of its key: only now the order of the key is another one.
            copy.right(each)
            copy.wrong(Kind.REORDERED, late, late)
        elif number == 1_000:
            copy.right(each)
            copy.wrong(Kind.EXTRA, None, foreign(each.partition, 0, each.timestamp_ms or 0))
        else:
            copy.right(each)
    return _written(scene, copy)


def without_keys(scene: Scene) -> Copy:
    """Records without keys are anywhere; some are missing, and some are there twice."""
    turn = 0

    def place(_: Record) -> int:
        nonlocal turn
        turn += 1
        return turn * 7 % _TARGETS

    _write_source(scene, Shape(keys=0))
    copy = _Writing(place)
    for each in scene.written():
        number = each.offset or 0
        if number in (0, 77, 1_499):
            copy.wrong(Kind.MISSING, each, None)
        elif number == 1_200:
            copy.right(each)
            # To the same partition: which of the two is the repeated one cannot be seen.
            turn -= 1
            copy.wrong(Kind.REPEATED, each, each)
            copy.either()
        else:
            copy.right(each)
    return _written(scene, copy)


def _write_source(scene: Scene, shape: Shape) -> None:
    create_topic(scene.source, scene.topic, partitions=_SOURCES)
    create_topic(scene.target, scene.copy, partitions=_TARGETS)
    if shape.keys:
        for partition in range(_SOURCES):
            # A key is in one partition only, or its order would not be known.
            records = [
                replace(each, key=b"%d-%s" % (partition, each.key or b"")) for each in shape.records(_COUNT, partition)
            ]
            write(scene.source, scene.topic, SMALL.divided(records), SMALL.codec)
    else:
        write_source(scene, shape, _COUNT, _SOURCES, SMALL)


def _written(scene: Scene, copy: _Writing) -> Copy:
    for records in copy.partitions.values():
        write(scene.target, scene.copy, SMALL.divided(records))
    return Copy(Expected(tuple(joined(copy.findings)), equal=copy.equal, by_key=True))


TRIALS = (
    Trial("mixed: every kind, compared by key", "own loop", by_key),
    Trial("mixed: missing and repeated without keys, in other partitions", "own loop", without_keys),
)
