from __future__ import annotations

import json
from collections.abc import Callable

import pytest
import typer
from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.cli.output import report_errors
from mirror_lib.errors import TargetDivergedError, Where
from mirror_lib.former_names import FIELDS, JSON_MEMBERS, OPTIONS


def _exit_code(command: Callable[[], None]) -> int:
    with pytest.raises(typer.Exit) as caught:
        command()
    return caught.value.exit_code


def test_json_is_one_document_with_the_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    def command() -> None:
        with report_errors(True) as output:
            output.note("for people")
            output.table("topics", ("name", "bytes moved"), [("a", 1), ("b", 2)])
            output.table("other_flows", ("flow", "lag (records)"), [("A->B", 7)])
            output.values("summary", {"records": 3, "skipped": 1})
            output.document({"attempts": [{"facts": {"duplicates": 3, "by_group": {"duplicates": 3}}}]})
            with output.progress("copying", 2) as progress:
                progress.advance()
                progress.update(2, total=2, description="done")
            output.exit_code = 1

    assert _exit_code(command) == 1
    assert json.loads(capsys.readouterr().out) == {
        "topics": [{"name": "a", "bytes_moved": 1}, {"name": "b", "bytes_moved": 2}],
        # Renamed members have both names, and names that users chose one.
        "other_flows": [{"flow": "A->B", "lag_records": 7, "behind": 7}],
        "summary": {"records": 3, "skipped": 1},
        "attempts": [{"facts": {"duplicates": 3, "by_group": {"duplicates": 3}, "read_again": 3}}],
        "exit_code": 1,
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
    assert ("--quiet-seconds" in shown, "--still-seconds" in shown) == (True, False)


def test_the_console_shows_the_same_and_nothing_of_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    def command() -> None:
        with report_errors(False) as output:
            output.note("[not] markup")
            output.table("topics_moved", ("name", "bytes"), [("a[b]", 1234567), (None, True)])
            output.values("summary", {"seconds": 1.5, "topics": ("a", "b")})
            output.document({"hidden": "x"})
            with output.progress("copying", 1) as progress:
                progress.advance()

    assert _exit_code(command) == 0
    shown = capsys.readouterr().out
    for text in ("[not] markup", "topics moved", "a[b]", "1,234,567", "1.50", "a, b"):
        assert text in shown
    assert "hidden" not in shown


@pytest.mark.parametrize("as_json", [True, False])
def test_errors_end_the_command_with_their_exit_code(as_json: bool, capsys: pytest.CaptureFixture[str]) -> None:
    error = TargetDivergedError("somebody wrote there.", where=Where(flow="A->B", topic="t"), action="Look at it.")
    with pytest.raises(typer.Exit) as caught, report_errors(as_json):
        raise error
    assert caught.value.exit_code == 3
    captured = capsys.readouterr()
    if as_json:
        assert json.loads(captured.out) == {"error": error.attributes(), "exit_code": 3}
    else:
        assert captured.out == ""
        assert captured.err == "error: flow A->B, topic t: somebody wrote there.\nLook at it.\n"


def test_other_exceptions_are_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError), report_errors(True):
        _ = 1 / 0


def test_names_from_a_cluster_do_not_steer_the_terminal_nor_make_rows_of_their_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = "g\x1b[31mred\x07\r\u202e"

    def command() -> None:
        with report_errors(False) as output:
            output.note(name)
            output.table("groups", ("name",), [(name,)])
            output.values("counts", {name: name})
            # Without any there is no heading.
            output.values("reasons", {})
            output.table("others", ("group", "reason"), [("app\nforged  in-sync", "target-changed")])
            output.error(TargetDivergedError(f"{name} differs.", where=Where(topic=name), action=name))

    assert _exit_code(command) == 0
    told = capsys.readouterr()
    assert told.out.count(r"g\x1b[31mred\x07\r\u202e") == 4
    assert told.err.count(r"g\x1b[31mred\x07\r\u202e") == 3
    assert not {"\x1b", "\x07", "\r", "\u202e"} & set(told.out + told.err)
    assert [line.split()[0] for line in told.out.splitlines() if "forged" in line] == ["app\\nforged"]
    assert "reasons" not in told.out
