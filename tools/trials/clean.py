"""Clean copies by this project's own flow and by a copying loop, also of logs with retention and compaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from tests.support.flows import make_flow
from tests.support.kafka import Record, consume, create_topic, delete_records, set_config
from tools.trials.model import Expected, Finding, Kind, Offsets
from tools.trials.observer import must_be_equal
from tools.trials.planter import LARGE, PLAIN_BATCHES, SMALL, Batches, copy_loop, write, write_source
from tools.trials.records import FIRST_TIME_MS, PLAIN, Shape
from tools.trials.scene import Copy, Scene, Trial

_COUNT = 3_000
_ALL_EQUAL = Expected(equal=2 * _COUNT)
_LOOP, _OWN = "own loop", "batch-mirror"
#: The cleaner removes old values within about a second.
_COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.001",
    "min.compaction.lag.ms": "0",
}
#: A compacted topic that the cleaner leaves alone.
_TO_BE_COMPACTED = {"cleanup.policy": "compact", "min.compaction.lag.ms": str(2**50)}


@dataclass(frozen=True, slots=True)
class ByLoop:
    """A clean copy by the copying loop: pure data, made when it is called."""

    shape: Shape = PLAIN
    records: int = _COUNT
    partitions: int = 2
    source_batches: Batches = SMALL
    target_batches: Batches = LARGE
    source_configs: Mapping[str, str] = field(default_factory=dict)
    target_configs: Mapping[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    expected: Expected = _ALL_EQUAL
    #: Changes every record of the copy.
    change: Callable[[Record], Record] = lambda each: each

    def __call__(self, scene: Scene) -> Copy:
        """Write the source and copy it."""
        scene.create_both(partitions=self.partitions, source=self.source_configs, target=self.target_configs)
        write_source(scene, self.shape, self.records, self.partitions, self.source_batches)
        copy_loop(scene, batches=self.target_batches, change=self.change)
        return Copy(self.expected, self.options)


def _with_header(record: Record) -> Record:
    return replace(record, headers=(*record.headers, ("copied-by", b"loop")))


def named_pair(scene: Scene) -> Copy:
    """The name of the copy is known only by `--pair`."""
    copy = f"{scene.topic}-archive"
    scene.create_both(copy=copy)
    write_source(scene, PLAIN, _COUNT)
    copy_loop(scene, copy=copy)
    return Copy(Expected(equal=_COUNT), ("--pair", f"{scene.topic}={copy}"))


def merged(scene: Scene) -> Copy:
    """Another producer writes to the copy, too."""
    scene.create_both()
    write_source(scene, PLAIN, _COUNT)
    others = Shape(keys=0, size=50).records(500, start=1_000_000)
    for number, batch in enumerate(Batches((700,)).divided(scene.written())):
        write(scene.target, scene.copy, [batch, others[number * 100 : number * 100 + 100]])
    return Copy(Expected(equal=_COUNT), ("--merged",))


def every_codec(scene: Scene) -> Copy:
    """A partition for each codec on the source; the copy has another one."""
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")
    scene.create_both(partitions=len(codecs))
    for partition, codec in enumerate(codecs):
        batches = Batches((100, 3, 500), codec)
        write(scene.source, scene.topic, batches.divided(PLAIN.records(1_000, partition)), codec)
    copy_loop(scene, batches=Batches((77,), "zstd"))
    return Copy(Expected(equal=5_000))


def empty(scene: Scene) -> Copy:
    """A topic without any record."""
    scene.create_both(partitions=3)
    return Copy(Expected(equal=0))


def empty_partitions(scene: Scene) -> Copy:
    """Records in one partition of four."""
    scene.create_both(partitions=4)
    write(scene.source, scene.topic, SMALL.divided(PLAIN.records(_COUNT, 2)))
    copy_loop(scene)
    return Copy(Expected(equal=_COUNT))


def own_flow(settings: Mapping[str, str]) -> Callable[[Scene], Copy]:
    """This project's own flow, in two runs."""

    def make(scene: Scene) -> Copy:
        create_topic(scene.source, scene.topic, partitions=3)
        servers = scene.source.bootstrap_servers, scene.target.bootstrap_servers
        names = {
            "B.offset.storage.topic": f"offsets-{scene.topic}",
            "offset-syncs.topic.location": "target",
        }
        flow = make_flow(scene.folder, *servers, topics=scene.topic, settings={**names, **settings})
        for run in range(2):
            write_source(scene, PLAIN, 1_500, 3, SMALL, start=run * 1_500)
            report = flow.run()
            assert not report.errors, report.errors
        copy = f"A.{scene.topic}"
        return Copy(Expected(equal=must_be_equal(scene.written(), scene.copied(copy))))

    return make


# ---------------------------------------------------------------- retention and compaction

_GONE = 700


def retention(*, of_source: bool) -> Callable[[Scene], Copy]:
    """The oldest records of one partition are deleted on one side after the copy: their copies cannot be judged."""

    def make(scene: Scene) -> Copy:
        scene.create_both(partitions=2)
        write_source(scene, PLAIN, _COUNT, 2)
        copy_loop(scene, batches=Batches((300,)))
        gone = Offsets(1, 0, _GONE - 1)
        if of_source:
            delete_records(scene.source, scene.topic, before=_GONE, partition=1)
            finding = Finding(Kind.UNVERIFIABLE, _GONE, None, gone)
        else:
            delete_records(scene.target, scene.copy, before=_GONE, partition=1)
            finding = Finding(Kind.UNVERIFIABLE, _GONE, gone, None)
        return Copy(Expected((finding,), equal=2 * _COUNT - _GONE))

    return make


def retention_of_both(scene: Scene) -> Copy:
    """The source has lost more than the target."""
    scene.create_both()
    write_source(scene, PLAIN, _COUNT)
    copy_loop(scene)
    delete_records(scene.source, scene.topic, before=_GONE)
    delete_records(scene.target, scene.copy, before=300)
    finding = Finding(Kind.UNVERIFIABLE, _GONE - 300, None, Offsets(0, 300, _GONE - 1))
    return Copy(Expected((finding,), equal=_COUNT - _GONE))


def source_all_gone(scene: Scene) -> Copy:
    """Retention has removed every record of the source: nothing of the copy can be judged."""
    scene.create_both()
    write_source(scene, PLAIN, _COUNT)
    copy_loop(scene)
    delete_records(scene.source, scene.topic, before=_COUNT)
    finding = Finding(Kind.UNVERIFIABLE, _COUNT, None, Offsets(0, 0, _COUNT - 1))
    return Copy(Expected((finding,), equal=0))


def with_deletions(count: int) -> list[Record]:
    """Records of few keys, some of them deletions; the last of a key is one now and then."""
    return [
        Record(
            None if number % 11 == 5 else b"value-%d" % number,
            b"key-%d" % (number * 7 % 60),
            (),
            FIRST_TIME_MS + number,
        )
        for number in range(count)
    ]


def compacted(*sides: str) -> Callable[[Scene], Copy]:
    """Both topics may be compacted, and the cleaner comes to these sides, one after the other."""

    def make(scene: Scene) -> Copy:
        scene.create_both(source=_TO_BE_COMPACTED, target=_TO_BE_COMPACTED)
        write(scene.source, scene.topic, SMALL.divided(with_deletions(2_000)))
        copy_loop(scene, batches=Batches((100,)))
        for number, side in enumerate(sides):
            _compact(scene, number, of_source=side == "source")
        here, there = ({replace(each, offset=None) for each in side} for side in (scene.written(), scene.copied()))
        return Copy(Expected(equal=len(here & there)))

    return make


def compacted_and_missing(scene: Scene) -> Copy:
    """The newest record of a key is missing on the compacted target, where only older ones may be absent."""
    scene.create_both(source=_TO_BE_COMPACTED, target=_TO_BE_COMPACTED)
    write(scene.source, scene.topic, SMALL.divided(PLAIN.records(1_900)))
    # The last record of its key: keys are used in turn, and there are 97.
    lost = 1_850
    written = scene.written()
    write(scene.target, scene.copy, LARGE.divided([*written[:lost], *written[lost + 1 :]]))
    _compact(scene, 0, of_source=False)
    finding = Finding(Kind.MISSING, 1, Offsets(0, lost, lost))
    return Copy(Expected((finding,), equal=len(scene.copied())))


def _compact(scene: Scene, number: int, *, of_source: bool) -> None:
    """Let the cleaner remove what it may of all but the active segment, and wait until it has."""
    cluster, topic = (scene.source, scene.topic) if of_source else (scene.target, scene.copy)
    before = len(consume(cluster, topic))
    for name, value in _COMPACTED.items():
        set_config(cluster, topic, name, value)
    # A much later record makes the broker begin a segment. Its key is nobody else's, so that it is never removed.
    record = replace(PLAIN.record(5_000 * (number + 1), 0), key=b"roll-%d" % number)
    write(scene.source, scene.topic, [[record]])
    write(scene.target, scene.copy, [[record]])
    last = before

    def is_settled() -> bool:
        nonlocal last
        earlier, last = last, len(consume(cluster, topic))
        return last == earlier < before // 2

    scene.wait(is_settled, f"the compaction of {topic}")


TRIALS = (
    Trial("clean: other batches, all parts kept", _LOOP, ByLoop()),
    Trial("clean: the same batches", _LOOP, ByLoop(source_batches=PLAIN_BATCHES, target_batches=PLAIN_BATCHES)),
    Trial(
        "clean: an added header, with --ignore-header",
        _LOOP,
        ByLoop(options=("--ignore-header", "copied-by"), change=_with_header),
    ),
    Trial(
        "clean: the target's brokers set the timestamps",
        _LOOP,
        ByLoop(
            target_configs={"message.timestamp.type": "LogAppendTime"},
            expected=Expected(equal=2 * _COUNT, times_compared=False),
        ),
    ),
    Trial("clean: compressed again by the target's topic", _LOOP, ByLoop(target_configs={"compression.type": "gzip"})),
    Trial("clean: runs of equal records without a key", _LOOP, ByLoop(shape=Shape(keys=0, headers=False, run=500))),
    Trial("clean: all but a few records equal, of one time", _LOOP, ByLoop(shape=Shape(single=1_000, step_ms=0))),
    Trial(
        "clean: records of 900 kB",
        _LOOP,
        ByLoop(
            shape=Shape(size=900_000),
            records=30,
            source_batches=Batches((1,)),
            target_batches=Batches((1,), "gzip"),
            expected=Expected(equal=60),
        ),
    ),
    Trial("clean: a sample", _LOOP, ByLoop(options=("--sample", "10%"), expected=Expected())),
    Trial("clean: every codec", _LOOP, every_codec),
    Trial("clean: a pair of other names", _LOOP, named_pair),
    Trial("clean: an empty topic", _LOOP, empty),
    Trial("clean: empty partitions", _LOOP, empty_partitions),
    Trial("clean: retention on the source: not verifiable", _LOOP, retention(of_source=True)),
    Trial("clean: retention on the target: not verifiable", _LOOP, retention(of_source=False)),
    Trial("clean: retention on both sides: not verifiable", _LOOP, retention_of_both),
    Trial("clean: the source has nothing left: not verifiable", _LOOP, source_all_gone),
    Trial("clean: compacted target", _LOOP, compacted("target")),
    Trial("clean: compacted source", _LOOP, compacted("source")),
    Trial("clean: both compacted, one after the other", _LOOP, compacted("target", "source")),
    Trial("clean: records of others in the copy, with --merged", _LOOP, merged),
    Trial("clean: plain", _OWN, own_flow({})),
    Trial("clean: exactly once, in transactions", _OWN, own_flow({"B.exactly.once.source.support": "enabled"})),
)
