"""The list of commands and docs/commands.md say what the commands say; the list imports none of them."""

from __future__ import annotations

from pathlib import Path

from mirror_lib.cli.commands import commands, load_command
from tests.support.fresh_imports import loaded_after
from tools.commands_reference import markdown_reference

_DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "commands.md"


def test_the_list_says_of_a_command_what_its_own_help_begins_with() -> None:
    for name, listed in commands().items():
        command = load_command(name)

        assert command.name == name
        assert str(command.help).split("\n\n")[0].replace("\n", " ") == listed.help, name


def test_the_list_of_commands_imports_none_of_them() -> None:
    script = (
        "from typer.testing import CliRunner; from mirror_lib.cli.main import app;"
        "done = CliRunner().invoke(app, ['--help']); assert 'cutover' in done.output, done.output"
    )
    heavy = ("sqlalchemy", "confluent_kafka", "aiokafka", "pyspark", "airflow", "pyarrow")

    assert loaded_after(script, ("mirror_lib.cli.run.command", *heavy)) == []


def test_the_document_is_up_to_date() -> None:
    command = "python -m tools.commands_reference > docs/commands.md"
    assert _DOCUMENT.read_text(encoding="utf-8") == markdown_reference(), f"run {command}"
