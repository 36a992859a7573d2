"""Copies with planted faults, by the project's own copying loop. Each is data; what is expected follows from it."""

from __future__ import annotations

from dataclasses import replace

from tests.support.kafka import delete_records
from tools.trials.clean import compacted_and_missing
from tools.trials.damage import Changed, Damage, Extra, Missing, Reordered, Repeated
from tools.trials.model import Expected, Finding, Kind, Offsets
from tools.trials.planter import LARGE, PLAIN_BATCHES, SMALL, Batches, Planting, write, write_source
from tools.trials.records import PLAIN, Shape
from tools.trials.scene import Copy, Scene, Trial

_BY = "own loop"
_COUNT = 3_000
_LAST = _COUNT - 1
#: Records of the same time and without headers: they differ in nothing but their values.
_ALIKE = Shape(keys=0, headers=False, step_ms=0)
#: Nine records in ten are the same but for their times, and so are the runs, whose records have one time.
_BEATS = Shape(single=10)
#: The same, with the time of all records.
_BEATS_AT_ONCE = Shape(single=10, step_ms=0)
_RUNS = Shape(run=8)
#: As many batches on both sides, of the same records: only the damaged ones differ.
_SAME = Planting(records=_COUNT, source_batches=Batches((100,)), target_batches=None)
_BY_SMALL = Planting(records=_COUNT, source_batches=LARGE, target_batches=SMALL)
_TO_LARGE = Planting(records=_COUNT, source_batches=SMALL, target_batches=LARGE)
_PLAIN = Planting(records=_COUNT, source_batches=Batches((250,), "gzip"), target_batches=Batches((333,), "snappy"))


def _trial(name: str, planting: Planting, *damage: Damage) -> Trial:
    return Trial(name, _BY, replace(planting, damage=damage))


MISSING = (
    _trial("missing: the first record", _PLAIN, Missing(0, 0)),
    _trial("missing: the last record", _BY_SMALL, Missing(_LAST, _LAST)),
    _trial("missing: one record in the middle", _TO_LARGE, Missing(1_234, 1_234)),
    _trial("missing: one record between equal batches", _SAME, Missing(1_250, 1_250)),
    _trial("missing: a whole batch", _SAME, Missing(1_200, 1_299)),
    _trial("missing: three ranges", _PLAIN, Missing(10, 19), Missing(1_000, 1_001), Missing(2_990, 2_995)),
    _trial("missing: the end of one partition of three", replace(_PLAIN, partitions=3), Missing(2_500, _LAST, 1)),
    _trial("missing: one partition of three was never copied", replace(_PLAIN, partitions=3), Missing(0, _LAST, 1)),
    _trial("missing: every second record for a while", _PLAIN, *(Missing(n, n) for n in range(1_000, 1_100, 2))),
    _trial("missing: one of a run of equal records", replace(_PLAIN, shape=_RUNS), Missing(1_203, 1_203)),
    _trial("missing: one record between runs of equal ones", replace(_PLAIN, shape=_BEATS), Missing(1_209, 1_209)),
    _trial(
        "missing: one record between runs, all of one time",
        replace(_PLAIN, shape=_BEATS_AT_ONCE),
        Missing(1_209, 1_209),
    ),
    Trial("missing: the newest record of a key on a compacted target", _BY, compacted_and_missing),
)
REPEATED = (
    _trial("repeated: one record right behind itself", _SAME, Repeated(700, 700, 700)),
    _trial("repeated: the last record", _PLAIN, Repeated(_LAST, _LAST, _LAST)),
    _trial("repeated: the first record at the end", _TO_LARGE, Repeated(0, 0, _LAST)),
    _trial("repeated: a block right behind itself", _BY_SMALL, Repeated(500, 699, 699)),
    _trial("repeated: a block far behind", _PLAIN, Repeated(100, 199, 2_700)),
    _trial("repeated: a block twice more", _PLAIN, Repeated(500, 549, 549), Repeated(500, 549, 549)),
    _trial("repeated: records of one time and without keys", replace(_PLAIN, shape=_ALIKE), Repeated(40, 79, 1_000)),
    _trial("repeated: one of a run of equal records", replace(_PLAIN, shape=_RUNS), Repeated(1_203, 1_203, 1_203)),
)
REORDERED = (
    _trial("reordered: two neighbours", _SAME, Reordered(900, 900, 901)),
    _trial("reordered: the first two records", _PLAIN, Reordered(0, 0, 1)),
    _trial("reordered: the last two records", _BY_SMALL, Reordered(_LAST - 1, _LAST - 1, _LAST)),
    _trial("reordered: a block that comes later", _TO_LARGE, Reordered(700, 704, 799)),
    _trial("reordered: one record far later", _PLAIN, Reordered(5, 5, 2_900)),
    _trial("reordered: one record that comes earlier", _SAME, Reordered(800, 800, 699)),
    _trial("reordered: one record to the end", _PLAIN, Reordered(1_500, 1_500, _LAST)),
    _trial(
        "reordered: neighbours in several places", _PLAIN, *(Reordered(n, n, n + 1) for n in range(100, 2_900, 400))
    ),
    _trial("reordered: records of one time and without keys", replace(_PLAIN, shape=_ALIKE), Reordered(60, 69, 600)),
)
CHANGED = (
    _trial("changed: one value", _SAME, Changed(1_111, 1_111, "value")),
    _trial("changed: one key", _PLAIN, Changed(1_111, 1_111, "key")),
    _trial("changed: headers of one record", _BY_SMALL, Changed(1_111, 1_111, "headers")),
    _trial("changed: one timestamp", _TO_LARGE, Changed(1_111, 1_111, "timestamp")),
    _trial("changed: value of the first record", _PLAIN, Changed(0, 0, "value")),
    _trial("changed: headers of the last record", _PLAIN, Changed(_LAST, _LAST, "headers")),
    _trial("changed: timestamps of a range", _PLAIN, Changed(400, 449, "timestamp")),
    _trial("changed: values of a range", _PLAIN, Changed(400, 449, "value")),
    _trial("changed: headers of all records", _TO_LARGE, Changed(0, _LAST, "headers")),
    _trial("changed: one value without a key", replace(_PLAIN, shape=Shape(keys=0)), Changed(1_111, 1_111, "value")),
    _trial(
        "changed: different parts of neighbours",
        _PLAIN,
        *(Changed(n, n, part) for n, part in enumerate(("value", "headers", "timestamp", "key"), 2_000)),
    ),
)
EXTRA = (
    _trial("extra: one record before the first", _PLAIN, Extra(-1)),
    _trial("extra: one record behind the last", _BY_SMALL, Extra(_LAST)),
    _trial("extra: one record in the middle", _SAME, Extra(1_234)),
    _trial("extra: a block", _TO_LARGE, Extra(1_234, 300)),
    _trial(
        "extra: one record in each partition", replace(_PLAIN, partitions=3), *(Extra(9 * n, 1, n) for n in range(3))
    ),
    _trial("extra: one record between runs of equal ones", replace(_PLAIN, shape=_BEATS), Extra(1_208)),
)
_EVERY_KIND = (
    Missing(100, 104),
    Repeated(400, 419, 430),
    Reordered(900, 901, 950),
    Changed(1_500, 1_500, "value"),
    Extra(2_000, 3),
)
MIXED = (
    _trial(
        "mixed: every kind in one partition",
        _PLAIN,
        *_EVERY_KIND,
    ),
    _trial(
        "mixed: every kind in a copy of transactions",
        replace(_PLAIN, transaction=70),
        Missing(100, 104),
        Repeated(400, 401, 401),
        Reordered(900, 901, 909),
        Changed(1_500, 1_500, "value"),
        Extra(2_000, 2),
    ),
    _trial(
        "mixed: every kind, and timestamps of the target's brokers",
        replace(_PLAIN, target_configs={"message.timestamp.type": "LogAppendTime"}),
        *_EVERY_KIND,
    ),
    _trial(
        "mixed: every kind within forty records",
        _PLAIN,
        Missing(1_003, 1_003),
        Changed(1_009, 1_009, "headers"),
        Extra(1_014),
        Repeated(1_018, 1_019, 1_021),
        Reordered(1_028, 1_028, 1_031),
    ),
    _trial(
        "mixed: each kind in another partition of five",
        replace(_PLAIN, partitions=5, shape=_BEATS, records=2_000),
        Missing(509, 509, 0),
        Repeated(509, 509, 540, 1),
        Reordered(509, 509, 529, 2),
        Changed(509, 509, "value", 3),
        Extra(504, 1, 4),
    ),
    _trial(
        "mixed: missing, and as many extra at its place",
        _PLAIN,
        Missing(1_000, 1_009),
        Extra(1_009, 10),
    ),
    _trial(
        "mixed: repeated and its original missing a block later",
        replace(_PLAIN, source_batches=PLAIN_BATCHES, target_batches=SMALL),
        Repeated(200, 299, 299),
        Missing(300, 349),
    ),
    _trial(
        "mixed: 20 faults of every kind",
        replace(_PLAIN, records=10_000),
        *(
            fault
            for n in range(0, 10_000, 2_500)
            for fault in (
                Missing(n + 100, n + 109),
                Repeated(n + 600, n + 619, n + 700),
                Reordered(n + 1_100, n + 1_103, n + 1_150),
                Changed(n + 1_600, n + 1_601, "value"),
                Extra(n + 2_100, 2),
            )
        ),
    ),
)


def since(scene: Scene) -> Copy:
    """One record is missing before the time from which on records are compared, and one behind it."""
    options = ("--since", "2024-01-01T00:00:15Z")
    copy = replace(_PLAIN, damage=(Missing(1_000, 1_000), Missing(2_000, 2_000)), options=options)(scene)
    # A hundred records a second.
    expected = Expected((Finding(Kind.MISSING, 1, Offsets(0, 2_000, 2_000)),), equal=_COUNT - 1_500 - 1)
    return replace(copy, expected=expected)


def expired_before_it_was_copied(scene: Scene) -> Copy:
    """The copy has ended, and retention has removed more of the source than was ever copied."""
    copied, start = 50, 700
    scene.create_both()
    write_source(scene, PLAIN, _COUNT)
    write(scene.target, scene.copy, [scene.written()[:copied]])
    delete_records(scene.source, scene.topic, before=start)
    findings = (
        Finding(Kind.MISSING, _COUNT - start, Offsets(0, start, _LAST)),
        Finding(Kind.UNVERIFIABLE, copied, None, Offsets(0, 0, copied - 1)),
    )
    return Copy(Expected(findings, equal=0))


SOME = (
    Trial("missing: all that the source has left", _BY, expired_before_it_was_copied),
    Trial("missing: only what is newer than --since", _BY, since),
    _trial(
        "missing: the last record, with --sample",
        replace(_PLAIN, options=("--sample", "10%")),
        Missing(_LAST, _LAST),
    ),
)
TRIALS = (*MISSING, *REPEATED, *REORDERED, *CHANGED, *EXTRA, *MIXED, *SOME)
