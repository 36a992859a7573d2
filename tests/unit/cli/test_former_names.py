"""Former names of what users see are read, and `--json` has them next to the present ones."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.cli.output import JsonOutput
from mirror_lib.former_names import FIELDS, JSON_MEMBERS, OPTIONS


def test_a_document_has_both_names_of_its_members_and_those_that_users_chose_as_they_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    output = JsonOutput()
    facts = {"duplicates": 3, "by_group": {"duplicates": 3, "skipped": 0}}
    output.document({"attempts": [{"facts": facts}], "skipped": [], "other": {"skipped": 1}})
    output.table("other_flows", ("flow", "lag (records)"), [("A->B", 7)])
    output.finish()

    assert json.loads(capsys.readouterr().out) == {
        "attempts": [{"facts": {**facts, "read_again": 3}}],
        "exit_code": 0,
        "left_out": [],
        "other": {"skipped": 1},
        "other_flows": [{"flow": "A->B", "lag_records": 7, "behind": 7}],
        "skipped": [],
    }


def test_no_name_is_present_and_former_at_one_place() -> None:
    for members in (OPTIONS, FIELDS, *JSON_MEMBERS.values()):
        assert not members.keys() & set(members.values())
        assert len(set(members.values())) == len(members)


def test_former_options_are_read_and_not_shown() -> None:
    words = ["cutover", "new", "wave", "--config", "/none", "--flow", "A->B", "--topics", "x"]
    refused = CliRunner().invoke(app, [*words, "--no-way-back", "--max-read-again", "1", "--still-seconds", "-1"])
    assert (refused.exit_code, "--quiet-seconds" in refused.output) == (2, True)
    shown = CliRunner().invoke(app, ["cutover", "new", "--help"], env={"COLUMNS": "200"}).output
    assert "--quiet-seconds" in shown
    assert "--still-seconds" not in shown
