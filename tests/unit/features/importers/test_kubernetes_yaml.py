"""YAML that somebody hands in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.errors import ConfigurationError
from mirror_lib.features.importers.kubernetes_yaml import LARGEST_DEPTH, read_documents
from tests.support.refusals import read_or_refused


def test_scalars_stay_as_they_are_written() -> None:
    (document,) = read_documents("a: -1\nb: true\nc: 3.10\nd: '5'\ne: 0x10\nf: 2025-01-01\ng:\nh: yes\n", "x")

    assert document == {
        "a": "-1",
        "b": "true",
        "c": "3.10",
        "d": "5",
        "e": "0x10",
        "f": "2025-01-01",
        "g": "",
        "h": "yes",
    }
    # Empty documents are left out.
    assert read_documents("---\n---\na: b\n---\n# nothing\n", "x") == ({"a": "b"},)


def test_aliases_that_expand_to_millions_of_values_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]

    with pytest.raises(ConfigurationError, match="aliases expand"):
        read_documents("\n".join(lines), "x")
    with pytest.raises(ConfigurationError):
        read_documents("a: &a [*a]", "x")


def test_deep_nesting_is_refused(subtests: pytest.Subtests) -> None:
    for text in ["[" * (LARGEST_DEPTH + 1), "{a: " * (LARGEST_DEPTH + 1)]:
        with (
            subtests.test(text),
            pytest.raises(ConfigurationError, match=f"line 1: nested deeper than {LARGEST_DEPTH} levels"),
        ):
            read_documents(text, "x")


def test_tags_make_no_objects() -> None:
    for tag in ["!!python/object/apply:os.system [id]", "!!python/name:os.system x"]:
        (document,) = read_documents(f"a: {tag}", "x")

        assert document["a"] in (["id"], "x"), tag


def test_a_syntax_error_names_its_place() -> None:
    with pytest.raises(ConfigurationError, match=r"file\.yaml, line 2, column 5"):
        read_documents("a: b\nc: d: e\n", "file.yaml")


def test_a_template_is_told_from_a_mistake() -> None:
    with pytest.raises(ConfigurationError, match=r"line 1.*templates") as caught:
        read_documents("a: {{ .Values.a }}\n", "x")

    assert "helm template" in caught.value.action


@given(st.one_of(st.text(), st.text(alphabet="ab:&*[]{},-!'\"|>\n \t#%@`?"), st.text(alphabet="&*a [],\n")))
def test_any_text_is_read_or_refused(text: str) -> None:
    with read_or_refused():
        read_documents(text, "x")
