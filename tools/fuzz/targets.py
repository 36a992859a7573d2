"""All targets, by name."""

from __future__ import annotations

from tools.fuzz import (
    targets_of_answers,
    targets_of_forms,
    targets_of_imports,
    targets_of_logs,
    targets_of_outsiders,
    targets_of_records,
    targets_of_texts,
    targets_of_time,
)
from tools.fuzz.model import Target

TARGETS: tuple[Target, ...] = (
    *targets_of_logs.TARGETS,
    *targets_of_answers.TARGETS,
    *targets_of_records.TARGETS,
    *targets_of_texts.TARGETS,
    *targets_of_imports.TARGETS,
    *targets_of_forms.TARGETS,
    *targets_of_outsiders.TARGETS,
    *targets_of_time.TARGETS,
)


def target_named(name: str) -> Target:
    """Return a target.

    Raises:
        KeyError: there is none of that name.
    """
    return {target.name: target for target in TARGETS}[name]
