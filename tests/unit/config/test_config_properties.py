"""Properties files as `java.util.Properties.load` documents them."""

from __future__ import annotations

import javaproperties
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.config.file.properties import parse_properties
from mirror_lib.config.model import Severity

_LATIN = st.text(st.characters(max_codepoint=0xFF), max_size=20)


def test_lines_count_from_where_an_assignment_begins() -> None:
    parsed = parse_properties(b"# c\r\n\r\na=1,\\\r\n  2\r\nb=3\r\n")
    assert [(entry.key, entry.line) for entry in parsed.entries] == [("a", 3), ("b", 5)]


def test_a_file_that_ends_within_a_key_was_not_written_to_its_end() -> None:
    for end in ["A->B.enab", "  tasks", r"a\:b", "# old\nA->B.topi"]:
        (problem,) = parse_properties(f"clusters = A, B\n{end}".encode()).problems
        assert problem.severity is Severity.ERROR, end
        assert problem.message.startswith("the file ends in the middle of a line"), end
        assert problem.line == 2 + end.count("\n"), end

    for end in ["tasks.max\n", "tasks.max=", "tasks.max = 4", "tasks.max 4", "# tasks.max", "", "a = b, \\\nc"]:
        assert parse_properties(f"clusters = A, B\n{end}".encode()).problems == (), end


def test_of_lines_repeated_or_broken_the_last_counts_and_the_others_are_reported() -> None:
    parsed = parse_properties(b"a=1\nb=2\na=3\n")
    assert parsed.effective["a"].value == "3"
    assert [(p.severity, p.key, p.line) for p in parsed.problems] == [(Severity.WARNING, "a", 3)]

    parsed = parse_properties(b"a=\\u12\nb=2\nc=\\uzzzz\n")
    assert [(p.severity, p.line) for p in parsed.problems] == [(Severity.ERROR, 1), (Severity.ERROR, 3)]
    assert parsed.effective["b"].value == "2"


def test_what_java_reads_otherwise_than_meant_is_a_warning() -> None:
    for line in ["a = b # why", 'a = "b"', "a = 'b'", "a = ü"]:
        parsed = parse_properties(line.encode("utf-8"))
        assert [p.severity for p in parsed.problems] == [Severity.WARNING], line
        assert parsed.problems[0].line == 1, line


def test_backslashes_that_java_removes_are_doubted_and_other_escapes_are_not() -> None:
    for value in [r"pay\d+", r"a\\\d", r"C:\stores\key.jks", "a, \\\n  b\\w*"]:
        (problem,) = parse_properties(f"topics = {value}\n".encode()).problems

        assert (problem.severity, problem.line) == (Severity.WARNING, 1), value
        assert problem.suggestion == r"write \\ for a backslash, such as \\d in a regex", value

    for value in [r"pay\\d+", r".*[\-\.]internal", r"a\:b\ c\#\t\n", "\\u0041", "a, \\\n  b"]:
        assert parse_properties(f"topics = {value}\n".encode()).problems == (), value


@given(st.dictionaries(_LATIN, _LATIN, max_size=8))
def test_what_the_library_writes_is_read_back(values: dict[str, str]) -> None:
    read = parse_properties(javaproperties.dumps(values, timestamp=None).encode("iso-8859-1"))
    assert {key: entry.value for key, entry in read.effective.items()} == values


@given(st.dictionaries(_LATIN, _LATIN, max_size=8), st.sampled_from(["\n", "\r", "\r\n"]), st.integers(0, 3))
def test_text_with_every_character_escaped_is_read_back(values: dict[str, str], end: str, comments: int) -> None:
    def escaped(text: str) -> str:
        return "".join(f"\\u{ord(character):04x}" for character in text)

    lines = ["# comment \\"] * comments + [f"{escaped(key)} : {escaped(value)}" for key, value in values.items()]
    parsed = parse_properties(end.join(lines).encode("ascii"))
    assert {entry.key: entry.value for entry in parsed.entries} == values
    assert [entry.line for entry in parsed.entries] == list(range(comments + 1, comments + 1 + len(values)))


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_reported(data: bytes) -> None:
    lines = len(data.splitlines()) + 1
    assert all(1 <= entry.line <= lines for entry in parse_properties(data).entries)


_MARKED = "clusters = A, B\nA.bootstrap.servers = localhost:9092\n"


def test_a_byte_order_mark_is_one_error_and_the_rest_is_read() -> None:
    for encoding in ["utf-8-sig", "utf-16", "utf-32"]:
        file = parse_properties(_MARKED.encode(encoding))
        (problem,) = file.problems
        assert (problem.severity, problem.line) == (Severity.ERROR, 1), encoding
        assert "byte order mark" in problem.message, encoding
        assert {key: entry.value for key, entry in file.effective.items()} == {
            "clusters": "A, B",
            "A.bootstrap.servers": "localhost:9092",
        }, encoding


def test_a_mark_before_a_comment_or_a_blank_line_only_warns_unless_java_continues_it() -> None:
    for first in ["# Flows of the shop\n", "! x\n", "\n", "  \r\n"]:
        (problem,) = parse_properties((first + _MARKED).encode("utf-8-sig")).problems
        assert problem.severity is Severity.WARNING, first

    # To Java the first line is an assignment, since it does not begin with #: the next line is a part of its value.
    (problem,) = parse_properties(("# x \\\n" + _MARKED).encode("utf-8-sig")).problems
    assert problem.severity is Severity.ERROR


def test_a_mark_with_nothing_or_half_a_character_behind_it_is_read() -> None:
    for mark in (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\xff\xfe\0\0", b"\0\0\xfe\xff"):
        assert parse_properties(mark).entries == ()

    problems = parse_properties(_MARKED.encode("utf-16") + b"x").problems
    (problem,) = (each for each in problems if each.severity is Severity.ERROR)
    assert "UTF-16" in problem.message


def test_a_lone_backslash_at_the_end_is_an_empty_key_as_in_java() -> None:
    for end in ["\\", "\\\n", "  \\\r\n"]:
        parsed = parse_properties(f"a = 1\n{end}".encode())

        assert [(entry.key, entry.value, entry.line) for entry in parsed.entries] == [("a", "1", 1), ("", "", 2)], end
