"""Java regexes: expectations are what Java 17's own `Pattern.matches` and `Matcher.replaceAll` answered."""

from __future__ import annotations

import contextlib
import pickle
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mirror_lib.topology.code_points import CodePoints
from mirror_lib.topology.java_regex import compile_java, compile_list, compile_replacement

#: Pattern, texts that match as a whole, texts that do not.
ANSWERS_OF_JAVA = [
    ("orders", ["orders"], ["orders2", "xorders"]),
    ("a|ab", ["a", "ab"], ["abc"]),
    (r".*[\-\.]internal", ["x.internal", "x-internal"], ["x_internal"]),
    (r"\Qa.b\E.*", ["a.bc"], ["axbc"]),
    (r"\Qa.b", ["a.b"], ["axb"]),
    (r"x\Q1\E", ["x1"], ["x"]),
    (r"[\Qa-c\E]", ["a", "-"], ["b"]),
    (r"\p{Alpha}+", ["abcXYZ"], ["ab1", "é"]),
    (r"\p{Lower}\p{Upper}\p{Digit}", ["aB1"], ["ab1"]),
    (r"\P{Punct}", ["a"], ["-", "_"]),
    (r"\p{L}+", ["aé"], ["a1"]),
    (r"\pL\p{Lu}\p{IsNd}\p{gc=Ll}", ["aÉ1b"], ["aé1b"]),
    (r"(?i)\p{Lower}", ["A", "a"], ["1"]),
    (r"(?i)\p{Lu}", ["a", "A", "é"], []),
    ("[a-z&&[^bc]]+", ["ad"], ["ab", "ac"]),
    ("[a-z&&[def]&&[^e]]", ["d", "f"], ["e"]),
    ("[a-z&&def]", ["d"], ["a"]),
    ("[^a-z&&[def]]", ["a", "1"], ["d"]),
    ("[a-d[m-p]]", ["b", "n"], ["e"]),
    ("[^a-d[m-p]]", ["e"], ["b", "n"]),
    ("[]a]", ["]", "a"], []),
    ("[a^]", ["^", "a"], []),
    ("[a-]", ["a", "-"], []),
    (r"[\w&&[^\d_]]+", ["aB"], ["a1", "_"]),
    ("[a&b]", ["a", "&", "b"], []),
    ("a*+a", [], ["aa", "a"]),
    ("a++b", ["aab"], ["b"]),
    ("a?+a", ["aa"], ["a"]),
    ("a{1,2}+a", ["aaa"], ["aa"]),
    ("(?>a|ab)c", ["ac"], ["abc"]),
    ("(?i)orders", ["ORDERS", "Orders"], []),
    ("(?i)é|k", ["é", "K"], ["É", "\u212a"]),
    ("a(?i)b|c", ["aB", "C"], ["AB"]),
    ("(a(?i)b)c", ["aBc"], ["aBC"]),
    ("(?i:a)b", ["Ab"], ["AB"]),
    ("(?i)a(?-i)b", ["Ab"], ["aB"]),
    ("(?i)[a-c]", ["B", "b"], []),
    ("(?i)[^b]", ["a"], ["B"]),
    (r"(\w)\1", ["aa"], ["ab"]),
    (r"(a)\11", ["aa1"], ["aa"]),
    (r"(?<n>\w)-\k<n>", ["a-a"], ["a-b"]),
    (r"(?i)(a)\1", ["aA"], ["ab"]),
    ("(?!__).*", ["orders"], ["__x"]),
    (r"(?=a)\w+(?<!z)", ["ab"], ["az", "b"]),
    (".*(?<!-dlq|-retry)", ["orders", "-dlqs"], ["orders-dlq", "orders-retry"]),
    (".*(?<=-dlq|-retry|x)", ["a-dlq", "a-retry", "ax"], ["a", "dlq"]),
    (".*(?<!a(?i)|bc)d", ["d", "xd"], ["ad", "bcd", "BCd"]),
    ("(?<!|ab).*", [], ["", "x"]),
    (r"\d\D\w\W\s\S", ["1aa- a"], ["\u0661aa- a"]),
    (r"\h\H\v\V", ["\ta\nb"], ["a\ta\nb"]),
    ("a.b", ["a-b"], ["a\nb", "a\x85b", "a\u2028b"]),
    ("(?s)a.b", ["a\nb", "a\x85b"], []),
    ("(?d)a.b", ["a\x85b"], ["a\nb"]),
    (r"\Aa\z", ["a"], ["a\n"]),
    (r"a\Z(?s:.*)", ["a", "a\n", "a\r\n"], ["ab", "a\n\n"]),
    ("a$(?s:.*)", ["a", "a\n", "a\r\n"], ["ab"]),
    ("^a$", ["a"], ["b"]),
    (r"(?m)a$\n^b", ["a\nb"], ["ab"]),
    ("(?m)^", [], [""]),
    (r"\x41\u0042\0103\x{44}\cA\t\e", ["ABCD\x01\t\x1b"], ["ABC"]),
    (r"\uD83D\uDE00", ["😀"], []),
    (r"\N{LATIN SMALL LETTER A}", ["a"], []),
    (r"\-\_\.\/\:", ["-_./:"], []),
    (r"\B", [""], []),
    ("a}", ["a}"], []),
    ("(a|)b", ["ab", "b"], []),
    ("", [""], ["a"]),
    ("a{2}", ["aa"], ["a{2}"]),
    ("^*a", ["a"], []),
    (r"\p{L1}\p{LC}\p{LD}\p{all}\p{ASCII}", ["éa1一b"], ["éa-一b"]),
    (r"\p{Graph}\p{Print}\p{Blank}\p{Cntrl}\p{XDigit}\p{Space}\p{Alnum}", ["! \t\nf\x0b9"], ["  \t\nf\x0b9"]),
]


def test_a_pattern_matches_what_it_matches_in_java() -> None:
    for pattern, matching, others in ANSWERS_OF_JAVA:
        compiled = compile_java(pattern)

        assert [text for text in matching + others if compiled.fullmatch(text)] == matching, pattern


def test_what_java_refuses_is_refused(subtests: pytest.Subtests) -> None:
    for pattern in [
        "a{",
        "{a}",
        "*a",
        "a**",
        "a{2,1}",
        "(a",
        "a)",
        "[a",
        "[]",
        "[z-a]",
        r"[a-\d]",
        r"\q",
        r"[\b]",
        r"\k<n>",
        "(?<n>a)(?<n>b)",
        "(?<1>a)",
        "(?y)a",
        r"\p{Nope}",
        r"\x4",
        r"\u00",
        r"\08",
        "\\",
        r"\E",
        "a{,2}",
        "(?<n",
        r"[\1]",
        r"\p{",
        "(?P<n>a)",
        r"\c",
        r"\x{110000}",
        # Without an exact counterpart: refused rather than changed.
        "(?x)a b",
        "(?u)a",
        r"(?U)\w",
        r"\G",
        r"\X",
        r"\R",
        r"\b{g}",
        r"\p{IsAlphabetic}",
        r"\p{javaLowerCase}",
        r"\p{InGreek}",
        r"\p{IsLatin}",
        r"\1(a)",
        r"(a\1)",
        "[a&&]",
        "[a&&[b]&c]",
        "[a-c&&[ab]c]",
        r"[\v-]",
        "(?<=(?:a|bc))d",
        "a{2}{3}",
    ]:
        with subtests.test(pattern):
            with pytest.raises(ValueError) as caught:
                compile_java(pattern)

            assert repr(pattern) in str(caught.value)


def test_a_list_matches_when_one_member_does() -> None:
    for members, names, matching in (
        (
            ["orders", r"pay.*", r"\Qa.b\E"],
            ("orders", "payments", "a.b", "axb", "orders2"),
            ["orders", "payments", "a.b"],
        ),
        # A flag holds for later members as in Java.
        (["a", "(?i)b", "c"], ("a", "A", "B", "C"), ["a", "B", "C"]),
    ):
        compiled = compile_list(members)
        assert compiled is not None
        assert [name for name in names if compiled.fullmatch(name)] == matching
    assert compile_list([]) is None


_MEMBERS = st.lists(
    st.one_of(
        st.text("ab.-:", max_size=4),
        st.text("ab.", min_size=1, max_size=4).map(lambda text: text.replace(".", "\\.")),
        st.sampled_from(["a.*", "(a|b)", "a|b", "(?i)a", "(?s)a.b", "[ab]", "^a$", "", "a+.", r"\Qa.b\E", r"a\.b.a"]),
    ),
    min_size=1,
    max_size=5,
)


@example(["a.b"], "a\nb")
@example(["a.b", "c"], "axb")
@example(["(?s)a", "a.b"], "a\nb")
@example(["a.b", "(?i)b"], "AxB")
@given(_MEMBERS, st.text("abAB.-:x\n", max_size=5))
def test_a_list_matches_what_its_members_joined_match(members: list[str], name: str) -> None:
    compiled = compile_list(members)

    assert compiled.fullmatch(name) == (compile_java("|".join(members)).fullmatch(name) is not None)


def test_names_are_looked_up_and_no_part_of_a_regex() -> None:
    for form in ["orders-{}", "shop.orders.{}", r"shop\.orders\.{}"]:
        members = [form.format(number) for number in range(1000)]
        compiled = compile_list([*members, "pay.*"])

        assert compiled is not None, form
        assert compiled.pattern == compile_java("pay.*"), form
        assert all(compiled.fullmatch(member.replace("\\", "")) for member in members), form


@given(st.text(min_size=1, max_size=20).filter(lambda text: "\\E" not in text))
def test_quoted_text_matches_itself_only(text: str) -> None:
    compiled = compile_java(f"\\Q{text}\\E")

    assert compiled.fullmatch(text)
    assert not compiled.fullmatch(text + "x")


@given(st.text("abcXYZ019._-", min_size=1, max_size=20))
def test_a_topic_name_matches_itself(name: str) -> None:
    assert compile_java(name).fullmatch(name)


@given(st.text(max_size=30))
def test_any_text_is_a_regex_or_a_value_error(text: str) -> None:
    with contextlib.suppress(ValueError):
        compile_java(text)


def test_patterns_beyond_all_measure_are_value_errors() -> None:
    for pattern in (
        "a{99999999999}",
        "(" * 5000 + ")" * 5000,
        "(" * 6 + "a" + "{100})" * 6,
        "a{10000}b{10000}",
        "((a|b){150}c){150}",
    ):
        with pytest.raises(ValueError, match=r"cannot be used here|repeat more than 10,000 parts"):
            compile_java(pattern)


RANGES = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300)).map(lambda p: (min(p), max(p))), max_size=5)


@given(RANGES, RANGES, st.integers(0, 310))
def test_sets_of_code_points_obey_set_algebra(
    left: list[tuple[int, int]], right: list[tuple[int, int]], at: int
) -> None:
    a, b = CodePoints.of(left), CodePoints.of(right)
    in_a = any(first <= at <= last for first, last in left)
    in_b = any(first <= at <= last for first, last in right)

    assert (at in a, at in ~a, at in (a | b), at in (a & b)) == (in_a, not in_a, in_a or in_b, in_a and in_b)
    assert bool(re.fullmatch(a.pattern(), chr(at))) == in_a


def test_replacements_follow_java_also_when_they_were_pickled() -> None:
    for pattern, replacement, text, result in [
        ("orders-(.*)", "sales.$1", "orders-eu", "sales.eu"),
        ("(a)(b)?", "$2$1", "a", "a"),
        (r"(?<env>\w+)-(?<name>\w+)", "${name}_${env}", "prod-orders", "orders_prod"),
        ("(a)", r"\$1\\", "a", r"$1" + "\\"),
        ("(a)", "$12", "a", "a2"),
        ("(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)(k)", "$11$12", "abcdefghijk", "ka2"),
        ("a", "$0$0", "a", "aa"),
        ("a", "", "a", ""),
        ("a", r"\x", "a", "x"),
    ]:
        compiled = compile_java(pattern)
        match = compiled.fullmatch(text)
        assert match is not None, pattern
        expand = compile_replacement(replacement, compiled)
        assert expand(match) == pickle.loads(pickle.dumps(expand))(match) == result, pattern


def test_a_replacement_that_java_refuses_is_refused(subtests: pytest.Subtests) -> None:
    for replacement in ["$", "$x", "$2", "${nope}", "${1}", "${", "a\\", "$-"]:
        with subtests.test(replacement), pytest.raises(ValueError, match="replacement"):
            compile_replacement(replacement, compile_java("(a)"))
