"""The list of commands says what the commands say, without importing them."""

from __future__ import annotations

import subprocess
import sys

from mirror_lib.cli.commands import COMMANDS, load_command


def test_the_list_says_of_a_command_what_its_own_help_begins_with() -> None:
    for name, listed in COMMANDS.items():
        command = load_command(name)

        assert command.name == name
        assert str(command.help).split("\n\n")[0].replace("\n", " ") == listed.help, name


def test_the_list_of_commands_imports_none_of_them() -> None:
    script = (
        "import sys; from typer.testing import CliRunner; from mirror_lib.cli.main import app;"
        "done = CliRunner().invoke(app, ['--help']); assert 'cutover' in done.output, done.output;"
        "sys.exit(bool({'sqlalchemy', 'confluent_kafka', 'aiokafka', 'mirror_lib.cli.run.command'} & set(sys.modules)))"
    )

    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
