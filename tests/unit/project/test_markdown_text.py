"""Texts that others choose, in the Markdown of Airflow's pages."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from mirror_lib.airflow.forms.fields import literal
from mirror_lib.markdown_text import markdown_block, markdown_code, markdown_text

#: GFM with its links that are not marked, as Airflow's page has it.
_GFM = MarkdownIt("gfm-like")
# Only this library makes links of names such as `orders.io`.
_GFM.linkify.set({"fuzzy_link": False})
_SIGNS = st.text(st.sampled_from("ab|\\`*_[]()<>!#&;~:/.w@ \n\r\t\x1b\u2028"), max_size=30)
_PARTS = st.lists(
    st.sampled_from(["www.", "https://e.org", "![x](y)", "<b>", "a@e.org", "~~a~~", "&amp;", "|", "\\|", "``", "\n# "])
)


def kinds(text: str) -> set[str]:
    """The kinds of what a cell becomes, and the number of cells of its row."""
    document = f"| a | b |\n|---|---|\n| x {text} y | z |\n"
    tokens = _GFM.parse(document)
    assert sum(token.type == "td_open" for token in tokens) == 2
    assert [token.type for token in tokens[:1] + tokens[-1:]] == ["table_open", "table_close"]
    return {child.type for token in tokens for child in token.children or ()}


@given(st.one_of(_SIGNS, _PARTS.map("".join), st.text()))
def test_a_name_is_text_or_code_and_nothing_else(text: str) -> None:
    assert kinds(markdown_text(text)) <= {"text", "code_inline", "em_open", "em_close", "strong_open", "strong_close"}
    assert kinds(markdown_code(text)) <= {"text", "code_inline"}
    if text.strip():
        assert kinds(literal(text)) <= {"text", "code_inline", "strong_open", "strong_close"}


@given(st.lists(st.one_of(_SIGNS, _PARTS.map("".join), st.text(), st.just("```\n# x"), st.just("~~~~"))))
def test_no_line_leaves_a_block_of_code(lines: list[str]) -> None:
    tokens = _GFM.parse(f"x\n\n{markdown_block(lines)}\n\ny\n")

    assert [token.type for token in tokens].count("fence") == 1
    assert [token.content for token in tokens if token.type == "inline"] == ["x", "y"]


def test_a_link_would_be_one_without_it() -> None:
    for name in ("[go](http://evil.example)", "![x](http://evil.example/x.png)", "https://evil.example"):
        assert kinds(name) & {"link_open", "image"}, name
        assert not kinds(f"{markdown_text(name)} {literal(name)}") & {"link_open", "image"}, name


def test_most_texts_stay_as_they_are() -> None:
    for text, shown in (
        ("3 groups are ready.", "3 groups are ready."),
        ("A->B: 1,234 records (5 %)", "A->B: 1,234 records (5 %)"),
        ("a|b", "`a\\|b`"),
        ("a\nb", "a b"),
        ("a\x1bb", "`a\\x1bb`"),
        ("www.evil.example", "`www.evil.example`"),
        ("`", "`` ` ``"),
    ):
        assert markdown_text(text) == shown
