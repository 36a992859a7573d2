"""The overview asks the ledger the same number of questions however many flows there are."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import event
from sqlalchemy.engine import Engine

from tests.support.ledger.seeded import many, seed, write_config
from tests.support.page.app import Airflow, page_app
from tests.support.page.client import Client


def questions_of_the_overview(folder: Path, flows: int) -> int:
    stories = many(flows)
    folder.mkdir()
    config = write_config(folder, stories)
    seed(config, stories, partitions=4, observations=2)
    client = Client(page_app(config, Airflow()))
    # The first opens the ledger.
    assert len(client.get("/api/overview").json()["flows"]) == flows
    asked: list[str] = []

    def note(*arguments: object) -> None:
        asked.append(str(arguments[2]))

    event.listen(Engine, "before_cursor_execute", note)
    try:
        client.get("/api/overview")
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    return len([statement for statement in asked if statement.lstrip().upper().startswith(("SELECT", "WITH"))])


def test_more_flows_do_not_mean_more_queries(tmp_path: Path) -> None:
    few, more = questions_of_the_overview(tmp_path / "few", 2), questions_of_the_overview(tmp_path / "more", 12)

    assert few == more
    assert 5 < few < 15
