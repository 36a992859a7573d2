"""RegexRouters that only rename topics, and the lines that say the same."""

from __future__ import annotations

from pathlib import Path

from mirror_lib.config.model import Problem
from tests.support.config_files import TWO_CLUSTERS, ConfigFile

_ROUTER = f"""\
{TWO_CLUSTERS}A->B.transforms = route
A->B.transforms.route.type = org.apache.kafka.connect.transforms.RegexRouter
"""
_IDENTITY = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n"


def warnings(folder: Path, text: str) -> list[Problem]:
    problems = ConfigFile(folder / "mirror.properties", _ROUTER).problems(text)
    return [each for each in problems if each.key == "A->B.transforms.route.regex"]


def test_the_lines_of_the_rename_are_given_for_names_of_the_source(tmp_path: Path) -> None:
    for regex, more, source in [
        (r"A\\.(.*)", "", "(.*)"),
        ("A.(.*)", "", "(.*)"),
        (r"A\\.(.*)\\.v1", "", r"(.*)\\.v1"),
        (r"A\\.(orders-.*)", "", "(orders-.*)"),
        ("(.*)", _IDENTITY, "(.*)"),
        ("A_(.*)", "replication.policy.separator = _\n", "(.*)"),
    ]:
        text = f"A->B.transforms.route.regex = {regex}\nA->B.transforms.route.replacement = $1\n{more}"

        (problem,) = warnings(tmp_path, text)

        assert problem.suggestion is not None, regex
        assert problem.suggestion.startswith(
            f"write A->B.mirror.topics.rename.regex = {source} and A->B.mirror.topics.rename.replacement = $1, "
        ), regex
        assert problem.line == 7, regex


def test_no_lines_are_invented_for_an_unknown_prefix_or_a_router_of_some_records(tmp_path: Path) -> None:
    text = "A->B.transforms.route.regex = (.*)[.](.*)\nA->B.transforms.route.replacement = $2\n"

    (problem,) = warnings(tmp_path, text)

    assert problem.suggestion is not None
    assert problem.suggestion.startswith("write A->B.mirror.topics.rename.regex for the names of source topics")

    text = """\
A->B.transforms.route.regex = (.*)
A->B.transforms.route.replacement = $1
A->B.transforms.route.predicate = empty
A->B.predicates = empty
A->B.predicates.empty.type = org.apache.kafka.connect.transforms.predicates.RecordIsTombstone
"""

    assert not warnings(tmp_path, text)
