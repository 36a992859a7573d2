"""`mirror status` on a ledger of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mirror_lib.errors import DirtyStartError, Where
from mirror_lib.ledger.rows import PartitionRunRow
from mirror_lib.ledger.store import Ledger
from tests.support.flow_files import LEDGER, write_flow
from tests.support.ledger.ledgers import ready_ledger
from tests.support.ledger.rows import partition_run, round_row
from tests.support.terminal import invoke

_REFUSED = DirtyStartError("the last run did not end.", where=Where(flow="A->B", topic="t", partition=1), action="Ask.")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_flow(tmp_path, LEDGER, "clusters = A, B, C", "C.bootstrap.servers = c:9092", "A->C.enabled = true")


@pytest.fixture
def ledger(file: Path) -> Iterator[Ledger]:
    with ready_ledger(f"sqlite:///{file.parent}/ledger.sqlite3") as ledger:
        yield ledger


def _row(run_id: str, partition: int, **more: Any) -> PartitionRunRow:
    values = {"start_offset": 10, "end_offset": 40, "source_next": 40, "target_first": 5, "target_next": 35}
    values |= {"records": 30, "bytes": 2_500_000, "seconds": 1.5, "state": "done", **more}
    return partition_run(run_id, partition, topic="t", target_topic="A.t", **values)


def _run(*arguments: object) -> tuple[int, str]:
    return invoke("status", *arguments)[:2]


def _json(*arguments: object, expected: int = 0) -> dict[str, Any]:
    code, shown = _run(*arguments, "--json")
    assert code == expected, shown
    return json.loads(shown)


def _partial_run(ledger: Ledger) -> None:
    ledger.start_run(run_id="r1", flow="A->B", trigger="cli")
    failed = {"records": 0, "bytes": 0, "source_next": 10, "target_next": 5, "state": "failed"}
    ledger.save_partition_runs([
        _row("r1", 0),
        _row("r1", 1, **failed, reason=_REFUSED.reason, detail=str(_REFUSED)),
    ])  # fmt: skip
    ledger.finish_run("r1", state="partial", error=_REFUSED.attributes())


def test_given_no_ledger_when_asked_then_it_says_so_and_makes_none(file: Path) -> None:
    code, shown = _run("--config", file)

    assert code == 0
    assert "No ledger yet" in shown
    assert _json("--config", file)["runs"] == []
    rounds = _json("--config", file, "--rounds")
    assert (rounds["rounds"], rounds["expectations"]) == ([], None)
    assert "run r9 is not in the ledger" in _json("--config", file, "--run", "r9", expected=2)["error"]["what"]
    assert not (file.parent / "ledger.sqlite3").exists()


def test_given_a_ledger_without_tables_yet_when_asked_then_there_are_no_runs(file: Path) -> None:
    """The first run waits for a cluster, or has only just begun."""
    (file.parent / "ledger.sqlite3").touch()

    assert _json("--config", file)["runs"] == []


def test_given_no_file_when_asked_then_the_ledger_of_the_state_folder_is_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIRROR_STATE_DIR", str(tmp_path))
    with ready_ledger(f"sqlite:///{tmp_path}/ledger.sqlite3") as ledger:
        ledger.start_run(run_id="local", flow="A->B", trigger="cli")

    assert [run["id"] for run in _json()["runs"]] == ["local"]


def test_runs_are_shown_newest_first_with_what_they_copied(file: Path, ledger: Ledger) -> None:
    _partial_run(ledger)
    ledger.start_run(run_id="r2", flow="A->C", trigger="airflow mirror__A__C scheduled")
    ledger.finish_run("r2", state="succeeded")

    runs = _json("--config", file)["runs"]
    assert [run["id"] for run in runs] == ["r2", "r1"]
    assert (runs[1]["state"], runs[1]["records"], runs[1]["bytes"]) == ("partial", 30, 2_500_000)
    assert runs[1]["error"] == _REFUSED.attributes()
    assert datetime.fromisoformat(runs[1]["started_at"]).tzinfo is not None

    code, shown = _run("--config", file)
    assert code == 0
    for part in ("r1", "r2", "partial", "2.50", "unclean-start: the last run did not end.", "airflow mirror__A__C"):
        assert part in shown
    for options, narrowed in ((("--flow", "A->B"), ["r1"]), (("--limit", "1"), ["r2"]), (("--flow", "B->A"), [])):
        assert [run["id"] for run in _json("--config", file, *options)["runs"]] == narrowed, options


def test_one_run_is_shown_with_its_partitions_and_failures(file: Path, ledger: Ledger) -> None:
    _partial_run(ledger)

    found = _json("--config", file, "--run", "r1")

    assert found["run"]["state"] == "partial"
    assert [(row["partition"], row["state"], row["records"]) for row in found["partitions"]] == [
        (1, "failed", 0),
        (0, "done", 30),
    ]
    assert [(row["topic"], row["partitions"], row["records"], row["failed"]) for row in found["copied"]] == [
        ("t", 2, 30, 1)
    ]
    assert [(row["partition"], row["reason"]) for row in found["failures"]] == [(1, "unclean-start")]
    code, shown = _run("--config", file, "--run", "r1")
    assert code == 0
    assert "the last run did not end. Ask." in shown


def test_of_many_partitions_the_console_shows_the_beginning_and_json_all(file: Path, ledger: Ledger) -> None:
    ledger.start_run(run_id="r1", flow="A->B", trigger="cli")
    ledger.save_partition_runs([_row("r1", number) for number in range(60)])
    ledger.finish_run("r1", state="succeeded")

    assert len(_json("--config", file, "--run", "r1")["partitions"]) == 60
    assert "... and 10 more" in _run("--config", file, "--run", "r1")[1]
    assert "run r9 is not in the ledger" in _json("--config", file, "--run", "r9", expected=2)["error"]["what"]


def test_a_run_that_ended_without_a_word_has_died(file: Path, ledger: Ledger) -> None:
    ledger.acquire_lock(flow="A->B", run_id="alive", holder="process 1", lease_seconds=60)
    ledger.start_run(run_id="alive", flow="A->B", trigger="cli")
    ledger.start_run(run_id="killed", flow="A->C", trigger="cli")

    _, shown = _run("--config", file)

    lines = {line.split()[0]: line for line in shown.splitlines() if line.startswith(("alive", "killed"))}
    assert "died" in lines["killed"]
    assert "running" in lines["alive"]
    assert "died" not in lines["alive"]
    assert {run["id"]: run["died"] for run in _json("--config", file)["runs"]} == {"alive": False, "killed": True}
    assert _json("--config", file, "--run", "killed")["run"]["died"] is True


def test_what_the_newest_run_of_each_flow_left_is_told_with_its_time(file: Path, ledger: Ledger) -> None:
    ledger.start_run(run_id="r1", flow="A->B", trigger="cli")
    stopped = {"source_next": 25, "records": 15, "state": "failed", "seconds": 3.0, "bytes": 20_000_000}
    ledger.save_partition_runs([_row("r1", 0, seconds=3.0), _row("r1", 1, **stopped)])
    ledger.finish_run("r1", state="partial")

    (backlog,) = _json("--config", file)["backlogs"]

    assert (backlog["flow"], backlog["run_id"], backlog["partitions"]) == ("A->B", "r1", 2)
    assert (backlog["planned"], backlog["left"], backlog["unfinished"]) == (60, 15, 1)
    # 45 records were copied in 3 seconds.
    assert backlog["seconds_left"] == pytest.approx(1)
    assert datetime.fromisoformat(backlog["updated_at"]).tzinfo is not None
    assert "shows the current lag" in _run("--config", file)[1]
    assert _json("--config", file, "--flow", "A->C")["backlogs"] == []


def test_rounds_are_told_with_what_was_expected_and_how_old_their_records_were(ledger: Ledger, file: Path) -> None:
    began = datetime(2026, 1, 1, tzinfo=UTC)
    ledger.start_run(run_id="r1", flow="A->B", trigger="cli")
    ledger.save_round(
        round_row(
            "r1",
            began_at=began,
            copying_seconds=4.0,
            lag_records=10,
            bytes=3_000_000,
            expected_bytes=2_000_000,
            expected_seconds=2.0,
            oldest_age_ms=7_200_000,
            newest_age_ms=250,
            committed_at=began + timedelta(seconds=5),
        )
    )

    data = _json("--config", file, "--rounds", "--flow", "A->B")
    code, shown = _run("--config", file, "--rounds")

    (row,) = data["rounds"]
    assert (row["run_id"], row["lag_records"], row["expected_seconds"], row["seconds"]) == ("r1", 10, 2.0, 4.0)
    assert (row["oldest_age_ms"], row["newest_age_ms"]) == (7_200_000, 250)
    assert data["expectations"] == {"rounds": 1, "seconds_ratio": 2.0, "worst_seconds_ratio": 2.0, "bytes_ratio": 1.5}
    assert code == 0
    assert "2.00 times the expected duration" in shown


def test_a_run_is_told_with_its_rounds(ledger: Ledger, file: Path) -> None:
    ledger.start_run(run_id="r1", flow="A->B", trigger="cli")
    for number in (1, 2):
        began = datetime(2026, 1, 1, second=number, tzinfo=UTC)
        ledger.save_round(round_row("r1", number=number, began_at=began))

    assert [row["number"] for row in _json("--config", file, "--run", "r1")["rounds"]] == [1, 2]
