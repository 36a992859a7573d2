"""The trigger form of a verification in Airflow."""

from __future__ import annotations

from mirror_lib.airflow import Param
from mirror_lib.airflow.forms.fields import (
    MOST,
    choice_field,
    log_level_field,
    max_bytes_field,
    seconds_field,
    tasks_field,
    topic_names,
    topics_field,
)
from mirror_lib.config.model import FlowConfig
from mirror_lib.features.verify.model import VerifyMode

_WHAT, _HOW, _RUN = "What to compare", "Limits", "How to run"


def verify_form(flow: FlowConfig) -> dict[str, Param]:
    """Return the Params of a verification's DAG."""
    return {
        "topics": topics_field(
            title="Only these topics",
            description_md="Topic names or Java regular expressions. Empty: every topic of the flow.",
            section=_WHAT,
            names=topic_names(flow.topics),
        ),
        "mode": choice_field(
            VerifyMode.RECENT,
            VerifyMode,
            title="Mode",
            description_md=(
                "- **recent**: records since the last comparison that found both clusters equal\n"
                "- **full**: all records that both clusters still hold\n"
                "- **sample**: random ranges of offsets\n"
                "- **state**: the newest record of each key of compacted topics; finds lost deletions"
            ),
            section=_WHAT,
        ),
        "max_bytes": max_bytes_field(
            section=_HOW,
            description="Maximum number of bytes to read from the source; about as many are read from the target. "
            "Empty: all.",
        ),
        "max_seconds": seconds_field(
            exclusiveMinimum=0,
            title="Time budget (seconds)",
            description="Maximum duration of the comparison. Empty: no limit.",
            section=_HOW,
        ),
        "seed": Param(
            0,
            type="integer",
            minimum=-MOST,
            maximum=MOST,
            title="Sample seed",
            description="The same seed selects the same ranges of the same logs.",
            section=_HOW,
        ),
        "tasks": tasks_field(flow, section=_RUN),
        "log_level": log_level_field(section=_RUN),
    }
