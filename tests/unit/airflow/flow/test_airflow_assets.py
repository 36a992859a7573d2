import pytest

from mirror_lib.airflow.flow.assets import NewRecords, flow_alias, new_records, topic_asset
from tests.support.ledger.rows import partition_run


def row(topic: str, partition: int, *, first: int, records: int, run: str = "1", round_: int = 1, state: str = "done"):
    offsets = {"target_first": first, "target_next": first + records, "records": records, "bytes": records * 10}
    return partition_run(run, partition, topic=topic, target_topic=f"A.{topic}", round=round_, state=state, **offsets)


def test_an_assets_uri_names_the_cluster_by_its_alias_and_is_its_name():
    asset = topic_asset("West", "East.orders")

    assert asset.uri == "kafka://West/East.orders"
    assert asset.name == asset.uri
    # Signs that URIs give a meaning.
    assert topic_asset("us west/1", "orders").uri == "kafka://us%20west%2F1/orders"
    assert flow_alias("A->B").name == "mirror A->B"


def test_rounds_and_attempts_are_added_up_per_topic_of_the_target():
    rows = [
        row("orders", 0, first=100, records=5, run="2", round_=2),
        row("orders", 0, first=90, records=10, run="1"),
        row("orders", 1, first=7, records=1),
        row("cash", 3, first=0, records=2),
    ]

    assert new_records(rows) == (
        NewRecords("cash", "A.cash", records=2, bytes=20, offsets={3: (0, 2)}),
        NewRecords("orders", "A.orders", records=16, bytes=160, offsets={0: (90, 105), 1: (7, 8)}),
    )


def test_what_a_partition_got_before_it_failed_is_told_and_a_topic_without_new_records_is_not():
    assert new_records([row("orders", 0, first=1, records=3, state="failed")])[0].offsets == {0: (1, 4)}
    assert new_records([row("orders", 0, first=100, records=0)]) == ()


def test_an_event_carries_where_the_records_are_as_plain_json():
    extra = new_records([row("orders", 0, first=90, records=10)])[0].extra("A->B")

    assert extra == {
        "flow": "A->B",
        "source_topic": "orders",
        "topic": "A.orders",
        "records": 10,
        "bytes": 100,
        "partitions": 1,
        "offsets": {"0": [90, 100]},
    }


@pytest.mark.parametrize(("partitions", "told"), [(1000, 1000), (1001, 0)])
def test_the_event_of_a_very_wide_topic_has_totals_only(partitions, told):
    extra = new_records([row("orders", each, first=0, records=1) for each in range(partitions)])[0].extra("A->B")

    assert extra["partitions"] == partitions
    assert len(extra["offsets"]) == told
