"""The trigger form of a backfill in Airflow, and reading its values inside a task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from mirror_lib.airflow import Param
from mirror_lib.airflow.forms.fields import (
    bytes_per_second_field,
    choice_field,
    chosen_values,
    flag_field,
    literal,
    log_level_field,
    max_bytes_field,
    tasks_field,
    text_field,
    topics_field,
)
from mirror_lib.airflow.forms.values import BOUND, FIRST_BOUND
from mirror_lib.config.model import FlowConfig

_LONGEST_BOUND = 100
_WHAT, _WHERE, _HOW = "What to copy", "Target", "How to run"
_BOUND = (
    "**earliest**, **latest**, an offset (**offset 4711**), or a time such as **2026-01-31T00:00:00Z**: the first "
    "record of each partition that is not older."
)


class Target(StrEnum):
    """Topics that a backfill writes to."""

    #: The flow's topic names with a suffix.
    SUFFIX = "other topics: the flow's names with this behind"
    TOPIC = "one other topic: this name"
    SAME = "the flow's own topics"


@dataclass(frozen=True, slots=True)
class BackfillChoices:
    """The form values of one DAG run."""

    topics: tuple[str, ...] = ()
    begin: str = "earliest"
    end: str = "latest"
    target: Target = Target.SUFFIX
    target_name: str = ""
    name: str | None = None
    max_bytes: int | None = None
    bytes_per_second: int | None = None
    tasks: int | None = None
    accept_gaps: bool = False
    dry_run: bool = False

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> BackfillChoices:
        """Read what Airflow has already validated against the form's JSON schema."""
        texts = {name: (params.get(name) or "").strip() or None for name in ("name", "target_name")}
        given = {**params, **texts, "begin": params.get("from") or None, "end": params.get("to") or None}
        return cls(**chosen_values(cls, given))


def backfill_form(flow: FlowConfig) -> dict[str, Param]:
    """Return the Params of a flow's backfill DAG."""
    return {
        "topics": topics_field(
            title="Source topics",
            description_md=(
                "One topic name or Java regular expression per line, within the flow's selection. Leave empty only to "
                "continue a backfill by its name."
            ),
            section=_WHAT,
        ),
        "from": _bound(
            "earliest",
            FIRST_BOUND,
            title="From",
            description_md=f"{_BOUND} **cutover**: only records that were written to the source after a cutover.",
        ),
        "to": _bound("latest", BOUND, title="To (exclusive)", description_md=_BOUND),
        "name": text_field(
            pattern="^ *[a-zA-Z0-9._-]{0,80} *$",
            title="Name of the backfill",
            description=(
                "The same name continues the same backfill. Empty: the name is derived from the other fields. Letters, "
                "digits, dots, underscores and hyphens."
            ),
            section=_WHAT,
        ),
        "target": choice_field(
            Target.SUFFIX,
            Target,
            shown={
                Target.SUFFIX: "Other topics: the flow's names with a suffix",
                Target.TOPIC: "One other topic",
                Target.SAME: "The flow's own topics",
            },
            title="Target topics",
            description_md=(
                f"With the flow's own topics on {literal(flow.flow.target)}, the records are appended to them, "
                "including records that they already hold; the flow waits until the backfill has ended."
            ),
            section=_WHERE,
        ),
        "target_name": text_field(
            default=".backfill",
            pattern="^ *[a-zA-Z0-9._-]{0,249} *$",
            title="Topic name, or suffix of the topic names",
            section=_WHERE,
        ),
        "dry_run": flag_field(title="Dry run", description="Print the estimate; change nothing.", section=_HOW),
        "max_bytes": max_bytes_field(
            section=_HOW,
            description="Approximate number of bytes that this run copies; trigger it again for the rest. Empty: all.",
        ),
        "bytes_per_second": bytes_per_second_field(section=_HOW),
        "tasks": tasks_field(flow, section=_HOW),
        "accept_gaps": flag_field(
            title="Accept gaps",
            description="Skip records that the source has deleted since the backfill was defined.",
            section=_HOW,
        ),
        "log_level": log_level_field(section=_HOW),
    }


def _bound(default: str, format_: str, *, title: str, description_md: str) -> Param:
    return Param(
        default,
        type="string",
        maxLength=_LONGEST_BOUND,
        format=format_,
        title=title,
        description_md=description_md,
        section=_WHAT,
    )
