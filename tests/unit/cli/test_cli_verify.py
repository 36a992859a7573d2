"""`mirror verify` before it comes to any cluster."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from mirror_lib.cli.main import app

_FILE = """\
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
A->B.enabled = true
mirror.ledger.url = sqlite:///ledger.sqlite3
"""


def test_a_mode_that_does_not_exist_is_wrong_usage(tmp_path: Path) -> None:
    file = tmp_path / "mirror.properties"
    file.write_text(_FILE)

    result = CliRunner().invoke(app, ["verify", "--config", str(file), "--flow", "A->B", "--mode", "some", "--json"])

    assert result.exit_code == 2
    assert "full, sample, recent" in json.loads(result.stdout)["error"]["action"]


def test_a_flow_that_does_not_exist_is_wrong_usage(tmp_path: Path) -> None:
    file = tmp_path / "mirror.properties"
    file.write_text(_FILE)

    result = CliRunner().invoke(app, ["verify", "--config", str(file), "--flow", "A->C"])

    assert result.exit_code == 2


def test_the_help_says_what_the_exit_codes_mean() -> None:
    result = CliRunner().invoke(app, ["verify", "--help"])

    assert "1 not verifiable" in " ".join(result.output.split())
