"""Faults in copies by MirrorMaker 2: by its own settings, by a reset of its positions, and by a foreign producer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tests.support.kafka import Record, create_topic
from tools.trials.clean_mm import aborted_are_copied
from tools.trials.mirror_makers import MM2, copy_once
from tools.trials.model import Expected, Finding, Kind, Offsets, joined
from tools.trials.planter import LARGE, SMALL, write, write_source
from tools.trials.records import FIRST_TIME_MS, PLAIN, Shape, foreign
from tools.trials.scene import Copy, Scene, Trial

_COUNT = 2_000
_APACHE = "org.apache.kafka.connect.transforms"
#: The header that the predicate of a transform looks for.
MARK = "mark"
_MARKED = {
    "{source}->{target}.predicates": "marked",
    "{source}->{target}.predicates.marked.type": f"{_APACHE}.predicates.HasHeaderKey",
    "{source}->{target}.predicates.marked.name": MARK,
}


def _transform(kind: str, **more: str) -> dict[str, str]:
    """A transform of the marked records."""
    settings = {"type": f"{_APACHE}.{kind}", "predicate": "marked", **more}
    return {
        **_MARKED,
        "{source}->{target}.transforms": "planted",
        **{f"{{source}}->{{target}}.transforms.planted.{name}": value for name, value in settings.items()},
    }


#: Removes the marked records.
FILTER = _transform("Filter")


def by_transform(
    settings: Mapping[str, str], kind: Kind, marked: Sequence[int], *, parts: tuple[str, ...] = ()
) -> Callable[[Scene], Copy]:
    """MirrorMaker 2 with a transform that changes or removes the records with the header `mark` of partition 1.

    Args:
        marked: their offsets.
    """

    def make(scene: Scene) -> Copy:
        create_topic(scene.source, scene.topic, partitions=2)
        for partition in range(2):
            records = PLAIN.records(_COUNT, partition)
            for each in marked if partition else ():
                records[each] = replace(records[each], headers=((MARK, b"1"), ("kept", b"2")))
            write(scene.source, scene.topic, SMALL.divided(records), SMALL.codec)
        lost = len(marked) if kind is Kind.MISSING else 0
        copy_once(scene, {0: _COUNT, 1: _COUNT - lost}, settings)
        findings = [
            Finding(
                kind,
                1,
                Offsets(1, each, each),
                # Nothing is lost before it, if it is there.
                None if kind is Kind.MISSING else Offsets(1, each, each),
                parts,
            )
            for each in marked
        ]
        return Copy(Expected(tuple(joined(findings)), equal=2 * _COUNT - len(marked)))

    return make


def deletions_with_a_header(scene: Scene) -> Copy:
    """MirrorMaker 2 with a transform that adds a header to deletions."""
    create_topic(scene.source, scene.topic)
    deleted = (3, 700, 701, _COUNT - 1)
    records = Shape(headers=False, keys=_COUNT).records(_COUNT)
    for each in deleted:
        records[each] = replace(records[each], value=None)
    write(scene.source, scene.topic, LARGE.divided(records), LARGE.codec)
    prefix = "{source}->{target}"
    settings = {
        f"{prefix}.predicates": "deletion",
        f"{prefix}.predicates.deletion.type": f"{_APACHE}.predicates.RecordIsTombstone",
        f"{prefix}.transforms": "planted",
        f"{prefix}.transforms.planted.type": f"{_APACHE}.InsertHeader",
        f"{prefix}.transforms.planted.header": "deleted-by",
        f"{prefix}.transforms.planted.value.literal": "mm2",
        f"{prefix}.transforms.planted.predicate": "deletion",
        # MirrorMaker's converter of headers takes bytes only, and the transform gives a text.
        f"{prefix}.header.converter": "org.apache.kafka.connect.storage.SimpleHeaderConverter",
    }
    copy_once(scene, {0: _COUNT}, settings)
    findings = [
        Finding(Kind.CHANGED, 1, Offsets(0, each, each), Offsets(0, each, each), ("headers",)) for each in deleted
    ]
    return Copy(Expected(tuple(joined(findings)), equal=_COUNT - len(deleted)))


def _foreign(count: int, partition: int) -> list[Record]:
    return [foreign(number, partition, FIRST_TIME_MS) for number in range(count)]


def foreign_producer(scene: Scene) -> Copy:
    """Another producer writes to MirrorMaker's topic while it is idle; then MirrorMaker continues."""
    create_topic(scene.source, scene.topic, partitions=2)
    write_source(scene, PLAIN, _COUNT, 2)
    mm2 = MM2.of(scene)
    with mm2.running() as process:
        mm2.until(process, {0: _COUNT, 1: _COUNT})
        write(scene.target, scene.copy, [_foreign(3, 1)])
        write_source(scene, PLAIN, 500, 2, start=_COUNT)
        mm2.until(process, {0: _COUNT + 500, 1: _COUNT + 503})
    finding = Finding(Kind.EXTRA, 3, None, Offsets(1, _COUNT, _COUNT + 2))
    return Copy(Expected((finding,), equal=2 * (_COUNT + 500)))


def foreign_producer_first(scene: Scene) -> Copy:
    """The topic of the copy has two records of another producer before MirrorMaker begins."""
    scene.create_both()
    write(scene.target, scene.copy, [_foreign(2, 0)])
    write_source(scene, PLAIN, _COUNT)
    copy_once(scene, {0: _COUNT + 2})
    return Copy(Expected((Finding(Kind.EXTRA, 2, None, Offsets(0, 0, 1)),), equal=_COUNT))


def positions_lost(scene: Scene) -> Copy:
    """The topic with MirrorMaker's positions is deleted while it is stopped: it copies everything again."""
    create_topic(scene.source, scene.topic, partitions=2)
    write_source(scene, PLAIN, _COUNT, 2)
    mm2 = copy_once(scene, {0: _COUNT, 1: _COUNT})
    mm2.forget_positions()
    write_source(scene, PLAIN, 100, 2, start=_COUNT)
    with mm2.running() as process:
        mm2.until(process, {0: 2 * _COUNT + 100, 1: 2 * _COUNT + 100})
    findings = tuple(
        Finding(Kind.REPEATED, _COUNT, Offsets(each, 0, _COUNT - 1), Offsets(each, _COUNT, 2 * _COUNT - 1))
        for each in range(2)
    )
    return Copy(Expected(findings, equal=2 * (_COUNT + 100)))


def began_late(scene: Scene) -> Copy:
    """MirrorMaker 2 that begins at the end of the source (auto.offset.reset=latest): what was there is missing."""
    create_topic(scene.source, scene.topic)
    write_source(scene, PLAIN, _COUNT)
    mm2 = MM2.of(scene, {"{source}.consumer.auto.offset.reset": "latest"})
    number = _COUNT
    with mm2.running() as process:

        def begins() -> bool:
            nonlocal number
            process.cpu_seconds  # noqa: B018  # raises if it has ended
            write_source(scene, PLAIN, 5, start=number)
            number += 5
            return bool(mm2.copied())

        scene.wait(begins, "the first copied record", detail=lambda: process.log_tail(15))
        last = PLAIN.record(number - 1, 0).value
        scene.wait(lambda: any(each.value == last for each in mm2.copied()), "the last record")
    first = mm2.copied()[0].value
    begin = next(each.offset or 0 for each in scene.written() if each.value == first)
    finding = Finding(Kind.MISSING, begin, Offsets(0, 0, begin - 1))
    return Copy(Expected((finding,), equal=number - begin))


def stopped_too_early(scene: Scene) -> Copy:
    """MirrorMaker 2 is stopped for good, and the source gets more records: these are missing."""
    create_topic(scene.source, scene.topic, partitions=2)
    write_source(scene, PLAIN, _COUNT, 2)
    mm2 = copy_once(scene, {0: _COUNT, 1: _COUNT})
    write(scene.source, scene.topic, [PLAIN.records(40, 1, start=_COUNT)])
    assert Counter(each.partition for each in mm2.copied()) == {0: _COUNT, 1: _COUNT}
    finding = Finding(Kind.MISSING, 40, Offsets(1, _COUNT, _COUNT + 39))
    return Copy(Expected((finding,), equal=2 * _COUNT))


TRIALS = (
    Trial(
        "missing: a filter with a predicate",
        "MM2",
        by_transform(FILTER, Kind.MISSING, (0, 500, 501, 502, _COUNT - 1)),
    ),
    Trial(
        "changed: a transform drops a header",
        "MM2",
        by_transform(_transform("DropHeaders", headers=MARK), Kind.CHANGED, (0, 77, 1_200, 1_201), parts=("headers",)),
    ),
    Trial("changed: a transform adds a header to deletions", "MM2", deletions_with_a_header),
    Trial("missing: it began at the end of the source", "MM2", began_late),
    Trial("missing: it was stopped too early", "MM2", stopped_too_early),
    Trial("repeated: its positions were deleted", "MM2", positions_lost),
    Trial("extra: a foreign producer in the middle", "MM2", foreign_producer),
    Trial("extra: foreign records before it began", "MM2", foreign_producer_first),
    Trial("extra: aborted records that it has copied", "MM2", aborted_are_copied),
)
