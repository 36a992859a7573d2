"""Clean copies by MirrorMaker 2 and MirrorMaker 1, and one with nothing but the repeats of at-least-once delivery."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from confluent_kafka import Producer

from tests.support.kafka import Record, add_partitions, create_topic
from tools.trials.mirror_makers import MM2, copy_by_mm1, copy_once
from tools.trials.model import Expected, Finding, Kind, Offsets
from tools.trials.observer import must_be_equal, repeats
from tools.trials.planter import LARGE, SMALL, Batches, write, write_source
from tools.trials.records import PLAIN, Shape, odd
from tools.trials.scene import Copy, Scene, Trial, TrialError

_COUNT = 3_000


@dataclass(frozen=True, slots=True)
class ByMM2:
    """A copy by MirrorMaker 2 with some settings: pure data, made when it is called."""

    settings: Mapping[str, str]
    partitions: int = 2
    batches: Batches = SMALL
    shape: Shape = PLAIN
    #: True if the copy has the name of the source.
    same_name: bool = False
    options: tuple[str, ...] = ()
    #: Header that every record of the copy has in addition.
    added_header: str = ""
    #: True if the audit reads MirrorMaker's file.
    by_file: bool = False

    def __call__(self, scene: Scene) -> Copy:
        """Write the source and let MirrorMaker copy it."""
        create_topic(scene.source, scene.topic, partitions=self.partitions)
        write_source(scene, self.shape, _COUNT, self.partitions, self.batches)
        copy = scene.topic if self.same_name else ""
        mm2 = copy_once(scene, dict.fromkeys(range(self.partitions), _COUNT), self.settings, copy=copy)
        found = [self._without_header(each) for each in mm2.copied()]
        equal = must_be_equal(scene.written(), found)
        return Copy(Expected(equal=equal), self.options, flow=mm2.flow if self.by_file else None)

    def _without_header(self, record: Record) -> Record:
        return replace(record, headers=tuple(each for each in record.headers if each[0] != self.added_header))


#: Not the defaults, in all that may change batches.
_TUNED = {
    "tasks.max": "4",
    "{source}.consumer.max.poll.records": "170",
    "{source}.consumer.max.partition.fetch.bytes": "20000",
    "{target}.producer.compression.type": "lz4",
    "{target}.producer.batch.size": "300000",
    "{target}.producer.linger.ms": "100",
}
_EXACTLY_ONCE = {"{target}.exactly.once.source.support": "enabled"}
_IDENTITY = {"replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"}
#: Without SimpleHeaderConverter, MirrorMaker takes bytes only, and the transform gives a text.
_ADD_HEADER = {
    "{source}->{target}.transforms": "add",
    "{source}->{target}.transforms.add.type": "org.apache.kafka.connect.transforms.InsertHeader",
    "{source}->{target}.transforms.add.header": "copied-by",
    "{source}->{target}.transforms.add.value.literal": "mm2",
    "{source}->{target}.header.converter": "org.apache.kafka.connect.storage.SimpleHeaderConverter",
}


def killed_and_restarted(scene: Scene) -> Copy:
    """MirrorMaker 2 is killed while it copies, before it has stored its positions, and started again."""
    create_topic(scene.source, scene.topic, partitions=2)
    write_source(scene, PLAIN, _COUNT, 2, LARGE)
    mm2 = MM2.of(scene, {"{target}.offset.flush.interval.ms": "60000"})
    with mm2.running() as process:
        mm2.until(process, {0: _COUNT, 1: _COUNT})
        write_source(scene, PLAIN, _COUNT, 2, LARGE, start=_COUNT)
        mm2.until(process, {0: _COUNT + 500, 1: _COUNT + 500})
        process.kill()
    before = Counter(each.partition for each in mm2.copied())
    write_source(scene, PLAIN, 500, 2, LARGE, start=2 * _COUNT)
    with mm2.running() as process:
        # A marker comes last, whatever is repeated before it.
        last = {(each.partition, each.value) for each in scene.written() if each.offset == 2 * _COUNT + 499}

        def has_the_last() -> bool:
            process.cpu_seconds  # noqa: B018  # raises if it has ended
            return last <= {(each.partition, each.value) for each in mm2.copied()}

        scene.wait(has_the_last, "the rest of the copy", detail=lambda: process.log_tail(15))
    found = repeats(scene.written(), mm2.copied())
    if not found:
        raise TrialError(f"MirrorMaker repeated nothing; it had copied {dict(before)}")
    return Copy(Expected(found, equal=2 * (2 * _COUNT + 500)))


def restarted_with_more_partitions(scene: Scene) -> Copy:
    """MirrorMaker 2 is stopped, the source gets more partitions and records, and it is started again."""
    create_topic(scene.source, scene.topic, partitions=2)
    write_source(scene, PLAIN, _COUNT, 2)
    mm2 = copy_once(scene, {0: _COUNT, 1: _COUNT})
    add_partitions(scene.source, scene.topic, 4)
    write_source(scene, PLAIN, 500, 4, start=_COUNT)
    with mm2.running() as process:
        mm2.until(process, {0: _COUNT + 500, 1: _COUNT + 500, 2: 500, 3: 500})
    return Copy(Expected(equal=must_be_equal(scene.written(), mm2.copied())))


#: Records of a transaction, and whether it is committed, in turn.
_TRANSACTIONS = ((50, True), (20, False), (1, True), (1, False), (300, True), (30, False))


def write_transactions(scene: Scene) -> None:
    """Write committed and aborted transactions, with other records between them, into both partitions."""
    create_topic(scene.source, scene.topic, partitions=2)
    write(scene.source, scene.topic, _after_transactions(scene))


def _after_transactions(scene: Scene) -> Iterator[list[Record]]:
    """Write transaction after transaction; yield batches to write behind each by another producer."""
    producer = Producer(
        {"bootstrap.servers": scene.source.bootstrap_servers, "transactional.id": scene.topic, "log_level": 3}
    )
    producer.init_transactions(60)
    number = 0
    for count, is_committed in _TRANSACTIONS * 3:
        producer.begin_transaction()
        for partition in range(2):
            for record in PLAIN.records(count, partition, start=number):
                time = record.timestamp_ms or 0
                producer.produce(scene.topic, record.value, record.key, partition=partition, timestamp=time)
        producer.flush(60)
        if is_committed:
            producer.commit_transaction(60)
        else:
            producer.abort_transaction(60)
        number += count
        yield from (PLAIN.records(10, partition, start=number) for partition in range(2))
        number += 10


def transactions(isolation: str, *options: str) -> Callable[[Scene], Copy]:
    """MirrorMaker 2 that reads the source with an isolation level, where transactions were aborted."""

    def make(scene: Scene) -> Copy:
        write_transactions(scene)
        read = scene.written(isolation=isolation)
        counts = Counter(each.partition for each in read)
        mm2 = copy_once(scene, counts, {"{source}.consumer.isolation.level": isolation}, isolation=isolation)
        equal = must_be_equal(read, mm2.copied("read_uncommitted"))
        return Copy(Expected(equal=equal), options)

    return make


def aborted_are_copied(scene: Scene) -> Copy:
    """MirrorMaker 2 copies what was aborted: for readers of committed records that is extra."""
    copy = transactions("read_uncommitted")(scene)
    committed = {replace(each, offset=None) for each in scene.written()}
    aborted = [
        each for each in scene.copied(isolation="read_uncommitted") if replace(each, offset=None) not in committed
    ]
    findings = tuple(
        Finding(Kind.EXTRA, 1, None, Offsets(each.partition, each.offset or 0, each.offset or 0)) for each in aborted
    )
    return replace(copy, expected=Expected(findings, equal=len(committed)))


@contextmanager
def writer(scene: Scene, *, start: int) -> Iterator[None]:
    """A producer that writes as long as the context lasts."""
    stop = threading.Event()

    def batches() -> Iterator[list[Record]]:
        number = start
        while not stop.wait(0.05):
            yield from (PLAIN.records(20, partition, start=number) for partition in range(2))
            number += 20

    thread = threading.Thread(target=write, args=(scene.source, scene.topic, batches()))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def live(scene: Scene) -> Copy:
    """A producer writes while MirrorMaker 2 copies and the audit runs."""
    create_topic(scene.source, scene.topic, partitions=2)
    write_source(scene, PLAIN, _COUNT, 2)
    mm2 = MM2.of(scene)
    process = scene.stack.enter_context(mm2.running())
    scene.stack.enter_context(writer(scene, start=_COUNT))
    mm2.until(process, {0: _COUNT + 100, 1: _COUNT + 100})
    # It ends once everything that the source had at its beginning is there.
    return Copy(Expected(), wait=120.0)


def odd_records(scene: Scene) -> Copy:
    """Records with nulls, empty parts, headers that repeat, and equal neighbours."""
    create_topic(scene.source, scene.topic)
    records = odd(0)
    write(scene.source, scene.topic, SMALL.divided(records), SMALL.codec)
    mm2 = copy_once(scene, {0: len(records)})
    return Copy(Expected(equal=must_be_equal(scene.written(), mm2.copied())))


def by_mm1(scene: Scene) -> Copy:
    """MirrorMaker 1 writes each key to the partition of its hash, and records without a key anywhere."""
    for cluster in (scene.source, scene.target):
        create_topic(cluster, scene.topic, partitions=3)
    for partition in range(3):
        keyed = [replace(each, key=b"%d-%s" % (partition, each.key or b"")) for each in PLAIN.records(1_000, partition)]
        unkeyed = Shape(keys=0).records(200, partition, start=1_000)
        write(scene.source, scene.topic, SMALL.divided([*keyed, *unkeyed]), SMALL.codec)
    copy_by_mm1(scene, 3_600)
    here, there = (
        Counter(replace(each, offset=None, partition=0) for each in side)
        for side in (scene.written(), scene.copied(scene.topic))
    )
    if here != there:
        raise TrialError("MirrorMaker 1 has not copied the records once each")
    return Copy(Expected(equal=3_600, by_key=True))


TRIALS = (
    Trial("clean: MirrorMaker 2, audited by its file", "MM2", ByMM2({}, by_file=True, options=("--processes", "2"))),
    Trial("clean: other batches, lz4, four tasks", "MM2", ByMM2(_TUNED, partitions=4, batches=LARGE)),
    Trial("clean: exactly once", "MM2", ByMM2(_EXACTLY_ONCE)),
    Trial("clean: IdentityReplicationPolicy", "MM2", ByMM2(_IDENTITY, same_name=True)),
    Trial(
        "clean: a header that a transform adds, with --ignore-header",
        "MM2",
        ByMM2(
            _ADD_HEADER,
            shape=Shape(headers=False),
            options=("--ignore-header", "copied-by"),
            added_header="copied-by",
        ),
    ),
    Trial("clean: stopped, and restarted with more partitions", "MM2", restarted_with_more_partitions),
    Trial("clean: committed records of transactions", "MM2", transactions("read_committed")),
    Trial("clean: uncommitted records, with --uncommitted", "MM2", transactions("read_uncommitted", "--uncommitted")),
    Trial("clean: a producer writes all the time", "MM2", live),
    Trial("clean: nulls, empty parts, repeated headers", "MM2", odd_records),
    Trial("clean: killed in mid-copy: its repeats", "MM2", killed_and_restarted),
    Trial("clean: keys by hash, records without keys anywhere", "MM1", by_mm1),
)
