"""Invalid values that a higher layer overrides: they count nowhere, and refuse no file."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_lib.config.loader import load
from mirror_lib.config.model import IsolationLevel, Severity
from mirror_lib.config.settings.definition import Definition, Scope
from mirror_lib.config.settings.mirror_keys import FLOW_KEYS
from mirror_lib.config.settings.mm2_keys import MM2_FLOW
from mirror_lib.config.settings.values import check_value
from tests.support.config_files import ConfigFile

_NONSENSE = "(?"
_BASE = """\
clusters = A, B, C
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
C.bootstrap.servers = c:9092
A->B.enabled = true
emit.heartbeats.enabled = false
"""

#: The lower layer with an invalid value, and what overrides it with a valid one.
_OVERRIDDEN = [
    ("A->B.consumer.isolation.level = none", "A->B.source.consumer.isolation.level = read_committed"),
    ("A.consumer.isolation.level = none", "A->B.source.consumer.isolation.level = read_committed"),
    ("A.consumer.isolation.level = none", "A->B.consumer.isolation.level = x\nA->B.source.consumer.isolation.level = "
     "read_committed"),
    ("B.producer.max.request.size = big", "A->B.producer.override.max.request.size = 1000000"),
    ("tasks.max = many", "A->B.tasks.max = 2"),
    ("B.offset.storage.partitions = many", "offset.storage.partitions = 5"),
]  # fmt: skip


@pytest.fixture
def file(tmp_path: Path) -> ConfigFile:
    return ConfigFile(tmp_path / "mirror.properties", _BASE)


def _problems(file: ConfigFile, text: str) -> list[tuple[Severity, str | None]]:
    return [(each.severity, each.key) for each in file.problems(text)]


def _key(line: str) -> str:
    return line.split(" ", 1)[0]


def test_a_value_that_counts_nowhere_is_a_warning_and_names_the_line_that_wins(
    file: ConfigFile, subtests: pytest.Subtests
) -> None:
    for lower, higher in _OVERRIDDEN:
        with subtests.test(lower):
            problems = file.problems(f"{lower}\n{higher}\n")
            assert {each.severity for each in problems} == {Severity.WARNING}
            (told,) = [each for each in problems if each.key == _key(lower) and "must be" in each.message]
            assert "it has no effect" in told.message
            assert _key(higher.splitlines()[-1]).split(".", 1)[1] in told.message
            flow = load(file.path).flow("A->B")
            assert flow.enabled
            if "isolation.level" in lower:
                assert flow.isolation_level is IsolationLevel.READ_COMMITTED


def test_no_key_of_the_top_level_is_refused_that_every_flow_overrides(file: ConfigFile) -> None:
    keys = {
        each.name: each.default
        for each in (*MM2_FLOW, *FLOW_KEYS)
        if each.scope is Scope.FLOW and each.default and not each.instead and _is_invalid(each)
    }
    assert len(keys) > 50
    lines = [line for key, value in keys.items() for line in (f"{key} = {_NONSENSE}", f"A->B.{key} = {value}")]

    assert [key for severity, key in _problems(file, "\n".join(lines)) if severity is Severity.ERROR] == []
    refused = {key for severity, key in _problems(file, "\n".join(lines[::2])) if severity is Severity.ERROR}
    # The base says whether the flow is enabled.
    assert refused == {*keys} - {"enabled"}


def _is_invalid(definition: Definition) -> bool:
    try:
        check_value(definition, _NONSENSE)
    except ValueError:
        return True
    return False


def test_a_value_is_refused_where_it_counts_in_any_flow(file: ConfigFile) -> None:
    for lower in sorted({lower for lower, _ in _OVERRIDDEN}):
        assert (Severity.ERROR, _key(lower)) in _problems(file, f"{lower}\n"), lower

    text = (
        "A->C.enabled = true\nA.consumer.isolation.level = none\nA->B.source.consumer.isolation.level = read_committed"
    )

    assert _problems(file, text) == [(Severity.ERROR, "A.consumer.isolation.level")]

    text = "C.consumer.isolation.level = none"

    assert _problems(file, text) == [(Severity.ERROR, "C.consumer.isolation.level")]
