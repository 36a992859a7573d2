"""The short form of `./run trials`: some copies by the project's own loop and flow."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.clusters import KafkaPair
from tools.trials.all_trials import choose
from tools.trials.campaign import play_all
from tools.trials.results import TrialResult

_NAMES = (
    "mixed: every kind within forty records",
    "mixed: each kind in another partition of five",
    "reordered: records of one time and without keys",
    "changed: different parts of neighbours",
    "clean: retention on the source: not verifiable",
    "clean: exactly once, in transactions",
)


@pytest.mark.timeout(120)
def test_an_audit_finds_what_was_planted_and_nothing_else(kafka_pair: KafkaPair, tmp_path: Path) -> None:
    trials = choose(only=re.compile("|".join(f"^{re.escape(each)}$" for each in _NAMES)))
    results: list[TrialResult] = []

    play_all(trials, kafka_pair, tmp_path, at_once=3, on_result=results.append)

    assert len(results) == len(_NAMES)
    assert [(each.name, each.differences, each.failure) for each in results if not each.ok] == []
