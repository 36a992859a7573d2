"""`mirror transform`, as a person calls it: real brokers, a real Spark, and clusters that are as they were."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.spark.connect_server import ConnectAddress
from tests.support.clusters import KafkaPair
from tests.support.flows import Flow, pair_flow
from tests.support.kafka import Record, admin, consume, create_topic, produce, watermarks
from tests.support.names import unique_name

_TIME = 1_704_067_200_000


def settings(topic: str, folder: Path) -> dict[str, str]:
    """Only orders of one country, without card numbers; a line of its own for each item of carts."""
    (folder / "items.sql").write_text(
        "SELECT concat(value.id, '-', item) AS key, item AS value\n"
        "FROM records LATERAL VIEW explode(value.items) AS item\n"
    )
    orders, carts = f"{topic}-orders", f"{topic}-carts"
    return {
        "A->B.mirror.transforms": "live, mask, items",
        "A->B.mirror.transform.live.topics": orders,
        "A->B.mirror.transform.live.filter": "NOT coalesce(array_contains(headers.key, 'test'), false)",
        "A->B.mirror.transform.mask.topics": orders,
        "A->B.mirror.transform.mask.decode.value": "json",
        "A->B.mirror.transform.mask.schema.value": "id BIGINT, country STRING, card STRING",
        "A->B.mirror.transform.mask.filter": "value IS NULL OR value.country <> 'FR'",
        "A->B.mirror.transform.mask.value": "struct(value.id AS id, value.country AS country, '****' AS card)",
        "A->B.mirror.transform.items.topics": carts,
        "A->B.mirror.transform.items.decode.value": "json",
        "A->B.mirror.transform.items.schema.value": "id BIGINT, items ARRAY<STRING>",
        "A->B.mirror.transform.items.sql.file": "items.sql",
        "mirror.poison.policy": "quarantine",
    }


def order(number: int, country: str, *headers: tuple[str, bytes]) -> Record:
    value = json.dumps({"id": number, "country": country, "card": f"4000-{number}"}).encode()
    return Record(key=b"%d" % number, value=value, headers=headers, timestamp_ms=_TIME + number)


ORDERS = (
    order(0, "DE", ("trace", b"\xff")),
    order(1, "FR"),
    order(2, "IT", ("test", b"")),
    Record(key=b"3", value=b'{"id": 3, ', timestamp_ms=_TIME),
    Record(key=b"4", value=None, timestamp_ms=_TIME),
)


@pytest.fixture(scope="module")
def prefix() -> str:
    return unique_name("previewed")


@pytest.fixture(scope="module")
def flow(kafka_pair: KafkaPair, prefix: str, tmp_path_factory: pytest.TempPathFactory) -> Flow:
    for name, written in (
        ("orders", ORDERS),
        ("carts", [Record(value=b'{"id": 7, "items": ["pen", "ink"]}', timestamp_ms=_TIME)]),
        ("plain", [Record(value=b"as it is")]),
    ):
        create_topic(kafka_pair.source, f"{prefix}-{name}")
        produce(kafka_pair.source, f"{prefix}-{name}", written)
    folder = tmp_path_factory.mktemp("preview")
    return pair_flow(folder, kafka_pair, topics=f"{prefix}-.*", settings=settings(prefix, folder))


def transform(flow: Flow, *words: str) -> tuple[int, str, str]:
    arguments = ["transform", *words, "--config", str(flow.path), "--flow", "A->B"]
    done = CliRunner().invoke(app, arguments, env={"MIRROR_STATE_DIR": str(flow.path.parent / "state")})
    return done.exit_code, done.stdout, done.stderr


def document(flow: Flow, *words: str) -> tuple[int, dict[str, Any]]:
    code, told, problems = transform(flow, *words, "--json")
    assert told, problems
    return code, json.loads(told)


def everything(pair: KafkaPair) -> object:
    """All topics of both clusters with the ends of their logs, and all groups."""
    found = []
    for cluster in (pair.source, pair.target):
        topics = admin(cluster).list_topics(timeout=30).topics
        # Brokers make it for whoever asks, as these tests do.
        topics.pop("__consumer_offsets", None)
        ends = {
            (name, number): watermarks(cluster, name, number) for name in topics for number in topics[name].partitions
        }
        groups = sorted(each.group_id for each in admin(cluster).list_consumer_groups().result().valid)
        found.append((ends, groups))
    return found


def test_records_of_every_fate_when_previewed_then_each_is_told_and_nothing_is_written(
    flow: Flow, kafka_pair: KafkaPair, prefix: str
) -> None:
    flow.run()
    ran = consume(kafka_pair.target, f"A.{prefix}-plain")
    before, runs = everything(kafka_pair), flow.ledger.gaps("A->B")

    code, found = document(flow, "preview", "--topic", f"{prefix}-orders")

    assert code == 1, "one of them cannot be transformed"
    kept, by_mask, by_live, broken, tombstone = found["records"]
    assert [each["offset"] for each in found["records"]] == [0, 1, 2, 3, 4]
    assert [each["becomes"] for each in found["records"]] == ["changed", "dropped", "dropped", "failed", "unchanged"]
    assert kept["value"] == {"text": '{"id": 0, "country": "DE", "card": "4000-0"}'}
    assert kept["headers"] == [{"key": "trace", "value": {"hex": "ff"}}]
    (made,) = kept["made"]
    assert (made["topic"], made["partition"]) == (f"A.{prefix}-orders", 0)
    assert made["value"] == {"text": '{"id":0,"country":"DE","card":"****"}'}
    assert (made["key"], made["headers"], made["changed"]) == (kept["key"], kept["headers"], ["value"])
    assert (by_live["dropped_by"], by_mask["dropped_by"]) == ("live", "mask")
    assert (broken["error"]["reason"], broken["error"]["offset"]) == ("transform", 3)
    assert "mm2-quarantine.A.internal on B" in broken["policy"]
    assert tombstone["made"][0]["value"] is None
    assert (everything(kafka_pair), flow.ledger.gaps("A->B")) == (before, runs)
    assert consume(kafka_pair.target, f"A.{prefix}-plain") == ran


def test_a_record_that_becomes_several_when_previewed_for_a_person_then_all_are_shown(
    flow: Flow, kafka_pair: KafkaPair, prefix: str, server: ConnectAddress
) -> None:
    before = everything(kafka_pair)

    words = ("--topic", f"{prefix}-carts", "--from", "latest", "--master", str(server))
    code, told, problems = transform(flow, "preview", *words)

    assert code == 0, problems
    lines = [" ".join(line.split()) for line in told.splitlines()]
    assert 'value {"id": 7, "items": ["pen", "ink"]}' in lines
    first = lines.index(f"to A.{prefix}-carts-0 (1 of 2)")
    assert lines[first + 1 : first + 3] == ["* key 7-pen", "* value pen"]
    assert f"to A.{prefix}-carts-0 (2 of 2)" in lines
    assert lines[-1] == "1 record: 1 split into several records. Nothing was written."
    assert everything(kafka_pair) == before


def test_the_ways_of_all_topics_when_listed_then_those_with_transforms_are_told_apart(flow: Flow, prefix: str) -> None:
    code, found = document(flow, "list")

    assert code == 0
    assert [each["transform"] for each in found["transforms"]] == ["live", "mask", "items"]
    assert {each["topic"]: each["transforms"] for each in found["topics"]} == {
        f"{prefix}-carts": ["items"],
        f"{prefix}-orders": ["live", "mask"],
        f"{prefix}-plain": [],
    }
