"""What a real MirrorMaker 2 writes with transforms, and what our chains make of the same records.

MirrorMaker hands records to transforms as bytes whatever the converters are, so our chains run with `decodes=False`
here. What they do with decoded records is compared with Connect's classes in `test_smt_like_java`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mirror_lib.transform.smt.chain import SmtChain
from mirror_lib.transform.smt.record import RawRecord
from mirror_lib.transform.smt.settings import parse_settings
from tests.support.clusters import KafkaPair
from tests.support.kafka import Record, consume, create_topic, produce
from tests.support.mirror_maker import wait_until
from tests.support.names import unique_name
from tools.testbed.mm2 import MirrorMaker

PACKAGE = "org.apache.kafka.connect.transforms"
JSON = "org.apache.kafka.connect.json.JsonConverter"
SIMPLE = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
TEXT = "org.apache.kafka.connect.storage.StringConverter"
PARTITIONS = 2

ROUTING = """
transforms = route, dropMarked, dropTombstones, strip, stamp
transforms.route.type = RegexRouter
transforms.route.regex = [^.]+\\\\.(.*)-orders
transforms.route.replacement = $1-routed
transforms.dropMarked.type = Filter
transforms.dropMarked.predicate = marked
transforms.dropTombstones.type = Filter
transforms.dropTombstones.predicate = tombstone
transforms.strip.type = DropHeaders
transforms.strip.headers = secret, other
transforms.stamp.type = TimestampRouter
transforms.stamp.topic.format = ${topic}-${timestamp}
transforms.stamp.timestamp.format = yyyy-MM
transforms.stamp.predicate = routed
transforms.stamp.negate = false
predicates = marked, tombstone, routed
predicates.marked.type = predicates.HasHeaderKey
predicates.marked.name = drop
predicates.tombstone.type = predicates.RecordIsTombstone
predicates.routed.type = predicates.TopicNameMatches
predicates.routed.pattern = .*-routed
"""

FIELDS = f"""
key.converter = {TEXT}
value.converter = {JSON}
header.converter = {SIMPLE}
transforms = hoist, insert, cast, mask, when, rename, key, extract, header, again, flat
transforms.hoist.type = HoistField$Value
transforms.hoist.field = data
transforms.hoist.predicate = tombstone
transforms.hoist.negate = true
transforms.insert.type = InsertField$Value
transforms.insert.topic.field = topic!
transforms.insert.partition.field = partition
transforms.insert.timestamp.field = at
transforms.insert.static.field = site
transforms.insert.static.value = Berlin
transforms.cast.type = Cast$Value
transforms.cast.spec = partition:float64,data:string
transforms.cast.predicate = tombstone
transforms.cast.negate = true
transforms.mask.type = MaskField$Value
transforms.mask.fields = site,partition
transforms.mask.replacement = 17.25
transforms.mask.predicate = tombstone
transforms.mask.negate = true
transforms.when.type = TimestampConverter$Value
transforms.when.field = at
transforms.when.target.type = string
transforms.when.format = yyyy-MM-dd HH:mm:ss.SSS
transforms.when.predicate = tombstone
transforms.when.negate = true
transforms.rename.type = ReplaceField$Value
transforms.rename.renames = site:place
transforms.key.type = ValueToKey
transforms.key.fields = data,at
transforms.key.predicate = tombstone
transforms.key.negate = true
transforms.extract.type = ExtractField$Key
transforms.extract.field = data
transforms.extract.predicate = tombstone
transforms.extract.negate = true
transforms.header.type = HeaderFrom$Value
transforms.header.fields = topic,partition
transforms.header.headers = topic,partition
transforms.header.operation = move
transforms.header.predicate = tombstone
transforms.header.negate = true
transforms.again.type = HoistField$Value
transforms.again.field = outer
transforms.again.predicate = tombstone
transforms.again.negate = true
transforms.flat.type = Flatten$Value
transforms.flat.delimiter = /
transforms.drop.type = Filter
transforms.drop.predicate = tombstone
predicates = tombstone
predicates.tombstone.type = predicates.RecordIsTombstone
""".replace("hoist, insert", "drop, hoist, insert")


@dataclass(frozen=True)
class MirroredFlow:
    """One flow of MirrorMaker's with its chain."""

    alias: str
    topic: str
    settings: Mapping[str, str]

    def expected(self, records: list[Record]) -> dict[str, list[Record]]:
        """Target topic -> what our chain makes of the records, by partition and order."""
        parsed = parse_settings(self.settings)
        assert parsed.chain is not None, parsed.problems
        chain = SmtChain(parsed.chain, decodes=False)
        found: dict[str, list[Record]] = {}
        for each in sorted(records, key=lambda each: each.partition):
            raw = RawRecord(
                f"{self.alias}.{self.topic}", each.partition, each.key, each.value, each.headers, each.timestamp_ms
            )
            if (after := chain.transform(raw)) is not None:
                made = Record(after.value, after.key, after.headers, after.timestamp, after.partition or 0)
                found.setdefault(after.topic, []).append(made)
        return found


def parsed_lines(text: str) -> dict[str, str]:
    """The settings of a chain; types of the package may be written without it."""
    lines = dict(line.split(" = ", 1) for line in text.strip().splitlines())
    return {
        key: f"{PACKAGE}.{value}" if key.endswith(".type") and key.count(".") == 2 else value
        for key, value in lines.items()
    }


def some_records() -> list[Record]:
    """Records with and without keys, values and headers, in two partitions, in February and March 2024."""
    contents: list[tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]] = [
        (b"key", b"value", ()),
        (None, b"\x00\xff\xfe", (("secret", b"s"), ("kept", b"k"), ("secret", b"again"))),
        (b"dropped", b"value", (("drop", None),)),
        (b"tombstone", None, (("kept", b""),)),
        (b"\xff", '{"ü": 1.10}'.encode(), (("kept", b"\xff"),)),
        (b"", b"", ()),
    ]
    return [
        Record(value, key, headers, 1_709_100_000_000 + number * 86_400_000, partition)
        for partition in range(PARTITIONS)
        for number, (key, value, headers) in enumerate(contents)
    ]


def properties(flows: list[MirroredFlow], pair: KafkaPair, target: str) -> str:
    lines = {
        "clusters": ", ".join([*(flow.alias for flow in flows), target]),
        f"{target}.bootstrap.servers": pair.target.bootstrap_servers,
        "replication.factor": "1",
        "emit.heartbeats.enabled": "false",
        "emit.checkpoints.enabled": "false",
        "refresh.topics.interval.seconds": "5",
        **{f"{kind}.replication.factor": "1" for kind in ("offset-syncs.topic", "checkpoints.topic")},
        **{f"{kind}.storage.replication.factor": "1" for kind in ("offset", "status", "config")},
    }
    for flow in flows:
        lines[f"{flow.alias}.bootstrap.servers"] = pair.source.bootstrap_servers
        lines[f"{flow.alias}->{target}.enabled"] = "true"
        lines[f"{flow.alias}->{target}.topics"] = flow.topic
        # MirrorMaker takes transforms from no other place: at the top of the file their options are lost.
        lines |= {f"{flow.alias}->{target}.{key}": value for key, value in flow.settings.items()}
    return "".join(f"{key} = {value}\n" for key, value in lines.items())


def comparable(record: Record) -> Any:
    """A record by its contents; JSON as a value, and no offset."""
    value: Any = record.value
    if value is not None and value.startswith(b"{"):
        value = json.loads(value)
    return record.key, value, record.headers, record.timestamp_ms, record.partition


@pytest.mark.timeout(300)
def test_the_same_records_arrive_as_from_mirror_maker(transform_pair: KafkaPair, tmp_path: Path) -> None:
    # Given flows with a chain each, and the same records for all,
    target = unique_name("dst")
    flows = [
        MirroredFlow(unique_name("src"), f"{unique_name(name)}-orders", parsed_lines(chain))
        for name, chain in (("routing", ROUTING), ("fields", FIELDS))
    ]
    expected: dict[str, list[Record]] = {}
    for flow in flows:
        # The file doubles a backslash, as Java reads it.
        unescaped = {key: value.replace("\\\\", "\\") for key, value in flow.settings.items()}
        expected |= MirroredFlow(flow.alias, flow.topic, unescaped).expected(some_records())
        create_topic(transform_pair.source, flow.topic, partitions=PARTITIONS)
        produce(transform_pair.source, flow.topic, some_records())
    assert len(expected) == len(flows) + 1, "routed to one topic for each month"
    for topic in expected:
        create_topic(transform_pair.target, topic, partitions=PARTITIONS)

    # when MirrorMaker copies them,
    with MirrorMaker(tmp_path / "mm2", jvm_flags=("-Duser.timezone=UTC",)) as mirror_maker:
        mirror_maker.start(properties(flows, transform_pair, target)).wait_started()
        wait_until(
            lambda: all(
                len(consume(transform_pair.target, topic)) >= len(records) for topic, records in expected.items()
            ),
            mirror_maker,
            "the copy of all records",
        )

    # then every topic has what our chain gives.
    for topic, records in expected.items():
        arrived = consume(transform_pair.target, topic)
        assert [comparable(each) for each in arrived] == [comparable(each) for each in records], topic
