"""The example in README.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.trials.readme import BEGIN, END, between_marks, example
from tools.trials.scene import TrialError

_README = Path(__file__).resolve().parents[3] / "README.md"
_PRINTED = """\
verdicts
topic  why
orders
findings
topic   kind
orders  missing
The source was read up to 3 times.
Wrong: 1 missing.
"""


def test_the_example_has_the_findings_and_the_verdict() -> None:
    lines = example(_PRINTED).splitlines()

    assert lines[0].startswith("    $ mirror audit --source ")
    assert lines[1:] == ["    findings", "    topic   kind", "    orders  missing", "    Wrong: 1 missing."]


def test_an_output_without_findings_is_refused() -> None:
    with pytest.raises(TrialError, match="no table of findings"):
        example("Right: 10 records.\n")


def test_only_what_is_between_the_marks_is_replaced() -> None:
    assert between_marks(f"a\n{BEGIN}\nold\n{END}\nz\n", "new") == f"a\n{BEGIN}\n\nnew\n\n{END}\nz\n"
    with pytest.raises(TrialError, match="has no"):
        between_marks("a\n", "new")


def test_the_readme_has_an_example_that_fits_into_its_width() -> None:
    text = _README.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]

    assert "mirror audit" in text
    assert max(map(len, text.splitlines())) <= 110
