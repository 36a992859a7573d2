"""The tables of measurements in the guides are those of `bench/results`."""

from __future__ import annotations

import json
from pathlib import Path

from tools.bench.tables import GUIDES, MeasuredTable, load_results, shown_tables, with_tables

GUIDE = "Before.\n\n<!-- measured: lag shares -->\n| old |\n|---|\n\nAfter.\n"


def test_a_table_is_replaced_and_a_view_has_medians_of_columns_from_several_tables(tmp_path: Path) -> None:
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

    results = load_results(tmp_path)

    table = "| copier | median |\n|---|---|\n| mirror | **1 s** (0 to 2) |\n| MM2 | |\n"
    assert with_tables(GUIDE, results) == GUIDE.replace("| old |\n|---|\n", table)
    assert results["lag"].tables["short"] == MeasuredTable(
        ("copier", "CPU seconds", "median"), (("mirror", "22.2", "1 s"), ("MM2", "28.8", ""))
    )


def test_the_guides_show_every_present_measurement_with_its_command_and_date() -> None:
    results = load_results()
    shown = set()

    for guide in GUIDES:
        text = guide.read_text("utf-8")
        tables = shown_tables(text)
        assert tables, guide
        assert with_tables(text, results) == text, f"{guide}: run ./run bench tables"
        shown |= {file for file, _ in tables}

    assert shown == set(results)
    assert all(each.command and each.measured for each in results.values())
