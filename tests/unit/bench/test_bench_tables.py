"""The tables of measurements in the guides are those of `bench/results`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.tables import GUIDES, MeasuredTable, load_results, shown_tables, with_tables

GUIDE = """\
Before.

<!-- measured: lag shares -->
| old |
|---|

After.
"""


@pytest.fixture
def results(tmp_path: Path) -> Path:
    document = {
        "command": "./run bench lag",
        "measured": "2026-11-27",
        "tables": {
            "shares": {"columns": ["copier", "median"], "rows": [["mirror", "**1 s** (0 to 2)"], ["MM2", ""]]},
            "seconds": {"columns": ["copier", "CPU seconds"], "rows": [["mirror", "22.2"], ["MM2", "28.8 (28 to 30)"]]},
        },
        "views": {"short": {"of": ["shares", "seconds"], "columns": ["copier", "CPU seconds", "median"]}},
    }
    (tmp_path / "lag.json").write_text(json.dumps(document))
    return tmp_path


def test_a_table_is_replaced_and_the_text_around_it_stays(results: Path) -> None:
    assert with_tables(GUIDE, load_results(results)) == (
        "Before.\n\n<!-- measured: lag shares -->\n"
        "| copier | median |\n|---|---|\n| mirror | **1 s** (0 to 2) |\n| MM2 | |\n\nAfter.\n"
    )


def test_a_view_has_medians_of_columns_from_several_tables(results: Path) -> None:
    assert load_results(results)["lag"].tables["short"] == MeasuredTable(
        ("copier", "CPU seconds", "median"), (("mirror", "22.2", "1 s"), ("MM2", "28.8", ""))
    )


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.name)
def test_the_guides_show_the_present_measurements(guide: Path) -> None:
    text = guide.read_text("utf-8")

    assert shown_tables(text)
    assert with_tables(text, load_results()) == text, "run ./run bench tables"


def test_every_measurement_is_shown_and_says_by_which_command_and_when_it_was_made() -> None:
    shown = {file for guide in GUIDES for file, _ in shown_tables(guide.read_text("utf-8"))}
    results = load_results()

    assert shown == set(results)
    assert all(each.command and each.measured for each in results.values())
