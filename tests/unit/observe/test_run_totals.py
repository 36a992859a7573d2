from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from mirror_lib.observe.run_totals import human_bytes, text_table, topic_totals


def row(topic="t", partition=0, **changes):
    values = {"records": 10, "bytes": 100, "seconds": 1.0, "state": "done", "updated_at": datetime.now(UTC)}
    return SimpleNamespace(topic=topic, partition=partition, target_topic=f"A.{topic}", **{**values, **changes})


def test_partitions_and_rounds_add_up_but_seconds_are_those_of_the_slowest_partition():
    (total,) = topic_totals([row(), row(seconds=2.0), row(partition=1, seconds=1.5)])
    assert (total.partitions, total.records, total.bytes, total.seconds) == (2, 30, 300, 3.0)


def test_a_partition_that_a_retry_mended_is_not_failed():
    rows = [row(state="failed"), row(state="done"), row(partition=1, state="failed")]
    assert topic_totals(rows)[0].failed == 1


def test_topics_come_in_order():
    assert [total.topic for total in topic_totals([row("b"), row("a")])] == ["a", "b"]


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1250, "1.25 kB"), (12_500, "12.5 kB"), (999_600, "1.00 MB"), (5e13, "50.0 TB")],
)
def test_sizes_have_three_figures(count, text):
    assert human_bytes(count) == text


def test_a_table_aligns_its_columns():
    assert text_table(("a", "n"), [("long", "1"), ("b", "22")]).splitlines() == [
        "a      n",
        "----  --",
        "long   1",
        "b     22",
    ]
