"""docs/commands.md is what the program says of itself."""

from __future__ import annotations

from pathlib import Path

from mirror_lib.cli.reference import markdown_reference

_DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "commands.md"


def test_the_document_is_up_to_date() -> None:
    command = "python -m mirror_lib.cli.reference > docs/commands.md"
    assert _DOCUMENT.read_text(encoding="utf-8") == markdown_reference(), f"run {command}"


def test_every_command_and_group_that_does_something_has_a_section() -> None:
    text = markdown_reference()

    for name in ("plan", "run", "config check", "config import", "gaps accept", "position set", "demo", "demo stop"):
        assert f"\n## mirror {name}\n" in text


def test_options_show_their_names_values_and_defaults() -> None:
    text = markdown_reference()

    assert "| `--tasks` NUMBER |  | Maximum number of Spark tasks; default tasks.max. |" in text
    assert "| `--config` FILE | `MIRROR_CONFIG` | The MirrorMaker 2 properties file. |" in text
    assert "| `--limit` NUMBER | `20` | Number of runs to list, newest first. |" in text
