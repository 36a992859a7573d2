"""`mirror translate` and `mirror map show` with a ledger and without clusters."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from mirror_lib.config.first_start import parse_time
from mirror_lib.errors import ConfigurationError
from mirror_lib.features.cutover.tables.cutovers import Cutovers
from mirror_lib.identity import positions
from mirror_lib.ledger.cutover_rows import HandedOverRow
from mirror_lib.offsets.runs import OffsetRun
from tests.support.ledger.rows import segment_of
from tests.support.terminal import Terminal

#: Ten records, a hole of two offsets, ten more; on the target from 100 on without a hole.
RUNS = (OffsetRun(5, 100, 10), OffsetRun(17, 110, 10))


class Maps(Terminal):
    """Commands about the offset map in the ledger."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "A->B.topics = orders, more")

    def map(self, topic: str, partition: int, runs: tuple[OffsetRun, ...]) -> None:
        self.ledger.append_segments([segment_of(runs, flow="A->B", topic=topic, partition=partition)])

    def translated(self, topic: str, *words: str) -> list[dict[str, Any]]:
        code, found = self.json("translate", "--topic", topic, "--partition", "0", *words)
        assert code == 0
        return found["translations"]


@pytest.fixture(autouse=True)
def _short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file's hosts do not exist."""
    monkeypatch.setattr(positions, "PATIENCE_SECONDS", 0.2)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Maps]:
    with Maps(tmp_path) as made:
        made.map("orders", 0, RUNS)
        yield made


def offsets(*numbers: int) -> list[str]:
    return [word for number in numbers for word in ("--offset", str(number))]


def test_offsets_of_a_partition_with_their_landings(terminal: Maps) -> None:
    rows = terminal.translated("orders", *offsets(0, 5, 15, 27, 30))

    assert [(row["source_offset"], row["target_offset"], row["landing"], row["duplicates"]) for row in rows] == [
        (0, 100, "before", 0),
        (5, 100, "exact", 0),
        (15, 110, "hole", 0),
        (27, 120, "beyond", 0),
        (30, 120, "beyond", 3),
    ]
    assert {row["target_topic"] for row in rows} == {"A.orders"}
    rows = terminal.translated("orders", "--to-source", *offsets(109, 110))
    assert [(row["target_offset"], row["source_offset"]) for row in rows] == [(109, 14), (110, 17)]


def test_a_run_that_did_not_reach_the_ledger_is_not_skipped(terminal: Maps) -> None:
    """Source offsets 10 to 29 were copied to 10 to 29, and nobody noted it; or take-overs left 20 markers there."""
    terminal.map("more", 0, (OffsetRun(0, 0, 10), OffsetRun(30, 30, 5)))

    hole, after = terminal.translated("more", *offsets(20, 30))

    assert (hole["target_offset"], hole["landing"], hole["duplicates"]) == (10, "hole", 20)
    assert (after["target_offset"], after["duplicates"]) == (30, 0)


def test_a_topic_that_the_flow_does_not_replicate_is_refused_before_the_source_is_asked(terminal: Maps) -> None:
    """The clusters of this file do not exist."""
    for offset in (("--offset", "1"), ("--timestamp", "0")):
        code, found = terminal.json("translate", "--topic", "other", "--partition", "0", *offset)

        assert code == 2, offset
        assert (found["error"]["reason"], found["error"]["topic"]) == ("configuration", "other")
        assert "does not replicate this topic" in found["error"]["what"]


def test_the_map_of_a_topic_that_a_cutover_has_moved_is_still_used(terminal: Maps) -> None:
    """Its late consumers have to be moved, too."""
    now = datetime(2026, 1, 2, tzinfo=UTC)
    Cutovers(terminal.ledger).hand_over(
        [HandedOverRow(flow="A->B", topic="orders", target_topic="A.orders", cutover="w", since=now, by="ann")]
    )

    assert [row["target_offset"] for row in terminal.translated("orders", *offsets(5))] == [100]
    _, shown = terminal.json("map", "show", "--topics", "orders")
    assert [row["topic"] for row in shown["partitions"]] == ["orders"]


def test_what_is_not_clear_is_wrong_usage(terminal: Maps) -> None:
    place = ("--topic", "orders", "--partition", "0")
    for words in (
        (),
        ("--offset", "1"),
        place,
        (*place, "--offset", "1", "--group", "g"),
        ("--checkpoint-folder", "here"),
        ("--group", "g", "--to-source"),
        (*place, "--timestamp", "0", "--to-source"),
        (*place, "--timestamp", "yesterday"),
    ):
        code, found = terminal.json("translate", *words)
        assert (code, found["error"]["reason"]) == (2, "configuration"), words


def test_a_query_behind_the_map_may_miss_records_and_needs_a_person(terminal: Maps, tmp_path: Path) -> None:
    """The map begins at target offset 100: what stood before, the ledger does not know."""
    offsets_file = tmp_path / "checkpoint" / "offsets" / "0"
    offsets_file.parent.mkdir(parents=True)
    offsets_file.write_text('v1\n{}\n{"orders":{"0":2}}')
    folders = ("--checkpoint-folder", tmp_path / "checkpoint", "--out", tmp_path / "out")

    code, shown, _ = terminal.say("translate", *folders)

    assert code == 3
    assert "would be skipped" in shown
    # A folder with something else is refused.
    code, found = terminal.json("translate", "--checkpoint-folder", tmp_path, "--out", tmp_path / "other")
    assert (code, found["error"]["reason"]) == (3, "checkpoint-folder")


def test_times() -> None:
    assert parse_time("1700000000000") == 1_700_000_000_000
    for second in ("1970-01-01T00:00:01Z", "1970-01-01T00:00:01", "1970-01-01T01:00:01+01:00"):
        assert parse_time(second) == 1_000, second
    assert parse_time("1970-01-02") == 86_400_000

    for text in ("", "soon", "-5", "1969-12-31", "²"):
        with pytest.raises(ConfigurationError, match="not a valid time"):
            parse_time(text)


def test_the_map_is_shown_as_it_is_stored_and_narrowed_by_topics(terminal: Maps) -> None:
    terminal.map("more", 3, (OffsetRun(0, 0, 1_000_000),))

    code, found = terminal.json("map", "show")

    assert code == 0
    more, orders = found["partitions"]
    assert (orders["topic"], orders["partition"], orders["segments"], orders["records"]) == ("orders", 0, 1, 20)
    ranges = [orders[name] for name in ("source_first", "source_next", "target_first", "target_next")]
    assert ranges == [5, 27, 100, 120]
    assert more["bytes_per_million_records"] == more["bytes"] == len("A->B" + "more" + "r1") + 6 * 8
    assert found["bytes"] == more["bytes"] + orders["bytes"]
    _, found = terminal.json("map", "show", "--topics", "mo.*")
    assert [each["topic"] for each in found["partitions"]] == ["more"]


def test_a_flow_without_a_map_has_nothing_to_show(tmp_path: Path) -> None:
    with Maps(tmp_path) as terminal:
        assert terminal.ledger.gaps("A->B") == ()
        assert terminal.json("map", "show")[1]["partitions"] == []


def test_an_answer_without_clusters_says_that_they_were_not_compared(terminal: Maps) -> None:
    """As after the loss of a site, the ledger answers alone."""
    terminal.ledger.cluster_pairs.keep("A->B", "id-of-a", "id-of-b")

    for words in (("translate", "--topic", "orders", "--partition", "0", "--offset", "7"), ("map", "show")):
        code, told = terminal.json(*words)
        assert code == 0
        not_compared = [sentence.split(" was not compared")[0] for sentence in told["not_compared"]]
        assert not_compared == ["Cluster A", "Cluster B"]
        assert "was not compared" in terminal.say(*words)[1]
