"""Fields that several trigger forms have, and reading their values inside a task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mirror_lib.airflow.compatibility import Param
from mirror_lib.config.model import FlowConfig


def topics_field(*, title: str, description_md: str, section: str) -> Param:
    """Topic names or Java regular expressions, one a line; may stay empty."""
    return Param(
        None,
        # Without examples on purpose: Airflow 3.3 makes those of an array a select list that takes no own text.
        type=["null", "array"],
        items={"type": "string"},
        title=title,
        description_md=description_md,
        section=section,
    )


def chosen_topics(params: Mapping[str, Any]) -> tuple[str, ...]:
    """What somebody wrote into the `topics` field."""
    return tuple(text.strip() for text in params.get("topics") or () if text.strip())


def tasks_field(flow: FlowConfig, *, section: str) -> Param:
    """How many Spark tasks; empty leaves it to the flow."""
    return Param(
        None,
        type=["null", "integer"],
        minimum=1,
        title="Spark tasks",
        description_md=f"At most this many tasks copy side by side; empty means `tasks.max` ({flow.tasks_max}).",
        section=section,
    )
