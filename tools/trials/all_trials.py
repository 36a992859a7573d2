"""All trials, and the choice of some."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tools.trials import clean, clean_mm, planted, planted_by_key, planted_mm
from tools.trials import large as large_trials
from tools.trials.scene import Trial

_GROUPS: Mapping[str, tuple[Trial, ...]] = {
    "clean": (*clean.TRIALS, *clean_mm.TRIALS),
    "planted": (*planted.TRIALS, *planted_by_key.TRIALS, *planted_mm.TRIALS, *large_trials.TRIALS),
}
KINDS = tuple(_GROUPS)


def choose(*, kinds: str | None = None, only: re.Pattern[str] | None = None, large: bool = False) -> tuple[Trial, ...]:
    """Return the trials of a kind whose name or replicator contains a pattern.

    Args:
        large: also those that take minutes.
    """
    return tuple(
        each
        for kind, trials in _GROUPS.items()
        for each in trials
        if kinds in (None, kind)
        and (large or not each.large)
        and (only is None or only.search(each.name) or only.search(each.by))
    )
