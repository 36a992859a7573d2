"""Expressions that would match for longer than a run: an error of the expression, wherever it is used."""

from __future__ import annotations

import pickle
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from mirror_lib.config.loader import load_readable
from mirror_lib.config.secrets.providers import EnvironmentProvider, ProviderError
from mirror_lib.topology import bounded_pattern, java_regex, pattern_time
from mirror_lib.topology.bounded_pattern import SlowPatternError
from mirror_lib.topology.filters import DefaultConfigPropertyFilter, DefaultGroupFilter, DefaultTopicFilter
from mirror_lib.topology.java_regex import compile_java, compile_list
from mirror_lib.topology.rename import RenameRules

#: Expressions, and names for which an engine that only tries all ways would take ages.
SLOW = [
    (r"([.]|[.][.])+Z", "." * 248),
    (r"(?:x_?|x_?x)+Z", "x" * 248),
    (r"(?=(?:\w|\w\w)+Z)\w*", "a" * 248),
    # Without a repetition: each group of a row matches in two ways.
    ("(a|a)" * 40 + "Z", "a" * 248),
]


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_pattern, "PATTERN_SECONDS", 0.02)
    compile_java.cache_clear()


@pytest.mark.parametrize(("pattern", "name"), SLOW)
def test_a_match_that_would_not_end_is_an_error_of_its_expression(pattern: str, name: str) -> None:
    joined = compile_list(["orders", pattern])
    assert joined is not None
    for match in (
        compile_java(pattern).fullmatch,
        joined.fullmatch,
        DefaultTopicFilter({"topics": f"{pattern},payments"}).should_replicate_topic,
        DefaultTopicFilter({"topics.exclude": pattern}).should_replicate_topic,
        DefaultGroupFilter({"groups": pattern}).should_replicate_group,
        DefaultConfigPropertyFilter({"config.properties.exclude": pattern}).should_replicate_config_property,
        RenameRules(pattern=pattern, replacement="x").regex_name,
    ):
        compile_java.cache_clear()
        # Once it has taken too long, at once.
        for _ in range(1_000):
            with pytest.raises(SlowPatternError, match=r"takes more than 0\.02 s") as caught:
                match(name)
        assert repr(pattern)[1:12] in caught.value.what
        assert "nested repetitions" in caught.value.action
    with pytest.raises(ProviderError, match=r"takes more than 0\.02 s"):
        EnvironmentProvider({"allowlist.pattern": pattern}, {}).get("", name)


def test_many_matches_that_are_slow_together_are_an_error_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_pattern, "_SLOW_SECONDS", 0.0)
    monkeypatch.setattr(bounded_pattern, "PATTERN_SECONDS_A_MINUTE", 0.001)
    pattern = compile_java(".*x.*y.*")
    with pytest.raises(SlowPatternError, match="to match names"):
        all(pattern.fullmatch("a" * 249) is None for _ in range(100_000))


def test_in_a_file_a_slow_expression_is_an_error_of_its_line_and_all_together_have_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mirror.properties"
    slow = "([a-z]|[a-z.]|[a-z][a-z]|[.])+[0-9]"
    lines = ("clusters = A, B", "A->B.enabled = true", f"A->B.config.properties.exclude = {slow}", "A->B.topics = x.*y")
    path.write_text("\n".join([*lines, *(f"{each}.bootstrap.servers = h:1" for each in "AB"), ""]))
    # Else no process that reads several files could read the others.
    readable = load_readable(path)
    assert [str(each.flow) for each in readable.config.enabled_flows] == ["A->B"]
    (problem,) = readable.broken.problems if readable.broken else ()
    assert (problem.key, problem.line) == ("A->B.config.properties.exclude", 3)
    assert "takes more than 0.02 s" in problem.message

    # When each expression takes 100 s
    monkeypatch.setattr(pattern_time, "time", SimpleNamespace(thread_time=count(0, 100).__next__))
    java_regex._compile_list.cache_clear()
    compile_java.cache_clear()
    broken = load_readable(path).broken
    assert broken is not None
    (problem,) = (each for each in broken.problems if each.line == 4)
    assert "is not checked, because those before it took the 10 s" in problem.message


def test_usual_matches_are_not_counted_and_a_pickled_pattern_is_the_same() -> None:
    pattern = compile_java(r"(orders|pay)\..*")
    assert all(pattern.fullmatch(f"orders.{number}") for number in range(50_000))
    again = pickle.loads(pickle.dumps(pattern))
    assert (again, hash(again)) == (pattern, hash(pattern))


@pytest.mark.parametrize(
    "pattern",
    [
        r"\P{L}" * 2_000_000,
        "[" + r"\P{L}" * 2_000_000 + "]",
        "[" + "".join(map(chr, range(0x10000, 0x100000, 2))) + "]",
        "[" + r"\P{L}" + r"&&[^a]" * 1_000_000 + "]",
    ],
    ids=["classes", "in one", "single characters", "intersections"],
)
def test_classes_that_take_long_to_compile_are_refused_before_they_are_made(pattern: str) -> None:
    with pytest.raises(ValueError, match="too many classes"):
        compile_java(pattern)


@pytest.mark.parametrize("pattern", ['"' * 100_000, '(?:"{0}(?:{0}|x)(?:)){0}'.format('"' * 600) + '"'])
def test_texts_that_take_long_to_compare_are_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="1,000 characters in a row"):
        compile_java(pattern)
    compile_java("(" + "|".join(['"' * 400] * 20) + ")" + '"' * 500)


def test_a_class_of_many_ranges_is_matched_within_the_limit_too() -> None:
    pattern = compile_java(".*.*[" + "".join(map(chr, range(0x10000, 0x20000, 2))) + "]")
    with pytest.raises(SlowPatternError):
        pattern.fullmatch("a" * 1_000)
