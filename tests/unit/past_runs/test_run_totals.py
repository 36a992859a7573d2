from datetime import UTC, datetime
from types import SimpleNamespace

from mirror_lib.past_runs.run_totals import human_bytes, text_table, topic_totals


def row(topic="t", partition=0, **changes):
    values = {"records": 10, "bytes": 100, "seconds": 1.0, "state": "done", "updated_at": datetime.now(UTC)}
    return SimpleNamespace(topic=topic, partition=partition, target_topic=f"A.{topic}", **{**values, **changes})


def test_partitions_and_rounds_add_up_but_seconds_are_those_of_the_slowest_partition():
    (total,) = topic_totals([row(), row(seconds=2.0), row(partition=1, seconds=1.5)])
    assert (total.partitions, total.records, total.bytes, total.seconds) == (2, 30, 300, 3.0)
    # A partition that a retry mended is not failed.
    rows = [row(state="failed"), row(state="done"), row(partition=1, state="failed")]
    assert topic_totals(rows)[0].failed == 1
    # Topics come in order.
    assert [total.topic for total in topic_totals([row("b"), row("a")])] == ["a", "b"]


def test_sizes_have_three_figures():
    assert [human_bytes(count) for count in (0, 999, 1250, 12_500)] == ["0 B", "999 B", "1.25 kB", "12.5 kB"]
    assert [human_bytes(count) for count in (999_600, 5e13)] == ["1.00 MB", "50.0 TB"]


def test_a_table_aligns_its_columns():
    assert text_table(("a", "n"), [("long", "1"), ("b", "22")]).splitlines() == [
        "a      n",
        "----  --",
        "long   1",
        "b     22",
    ]
