"""The trigger form of a flow in Airflow, and reading its values inside a task."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mirror_lib.airflow.compatibility import Param
from mirror_lib.airflow.forms.fields import (
    bytes_per_second_field,
    choice_field,
    chosen_values,
    flag_field,
    literal,
    log_level_field,
    seconds_field,
    tasks_field,
    topic_names,
    topics_field,
)
from mirror_lib.config.model import FlowConfig
from mirror_lib.copy.job.arguments import ASK, GAP_CHOICES, JobArguments

#: Task id -> its label on the form, in the order of the DAG. Each can be skipped on its own.
OPTIONAL_STEPS = {
    "emit_heartbeats": "write heartbeats to the source",
    "sync_topics": "create missing target topics and partitions",
    "sync_topic_configs": "copy topic configs",
    "sync_topic_acls": "copy ACLs",
    "heartbeats": "check heartbeats on the target",
    "translate_offsets": "translate group offsets, write checkpoints",
    "sync_group_offsets": "commit translated offsets on the target",
    "announce_new_records": "emit asset events for topics with new records",
}


_WHAT, _BESIDE, _HOW = "What to copy", "Sync steps", "How to run"


def job_arguments(flow: str, config_path: str, params: Mapping[str, Any]) -> JobArguments:
    """Return the job's arguments with the form values of one DAG run; scheduled runs have the defaults.

    Raises:
        ConfigurationError: as `chosen_values`.
    """
    return JobArguments(config=Path(config_path), flow=flow, **chosen_values(JobArguments, params))


def excluded_steps(params: Mapping[str, Any]) -> frozenset[str]:
    """Return the sync steps that a DAG run skips (`OPTIONAL_STEPS`)."""
    # Airflow's form sends no value, instead of an empty list, for a list that was emptied.
    return frozenset(OPTIONAL_STEPS).difference(params.get("steps", OPTIONAL_STEPS) or ())


def is_usual(params: Mapping[str, Any]) -> bool:
    """Return True if a DAG run is like a scheduled one; its log level may differ."""
    return not chosen_values(JobArguments, params) and not excluded_steps(params)


def trigger_form(flow: FlowConfig) -> dict[str, Param]:
    """Return the Params of a flow's DAG. Every field may stay empty: the configuration then decides."""
    return {
        "topics": topics_field(
            title="Only these topics",
            description_md=(
                "Topic names or Java regular expressions. Empty: every topic that the flow selects. A run can only "
                "narrow the selection of the flow, which is:\n\n"
                + "\n".join(f"- {literal(pattern)}" for pattern in flow.topics)
            ),
            section=_WHAT,
            names=topic_names(flow.topics),
        ),
        "dry_run": flag_field(
            title="Dry run",
            description="Print what the run would do on both clusters; change nothing.",
            section=_WHAT,
        ),
        "gaps": choice_field(
            ASK,
            GAP_CHOICES,
            title="Lost records",
            description_md=(
                "What this run does with a partition whose source lost records before they were copied, was "
                "truncated, or was recreated:\n\n"
                "- **ask**: nothing; the partition is stalled until an operator decides (**mirror gaps**)\n"
                "- **accept**: skip the lost records and continue\n"
                "- **recopy**: copy the source again from its start, and append to the target topic\n\n"
                "The ledger records this decision."
            ),
            section=_WHAT,
        ),
        "steps": Param(
            list(OPTIONAL_STEPS),
            type=["null", "array"],
            items={"type": "string", "enum": list(OPTIONAL_STEPS)},
            examples=list(OPTIONAL_STEPS),
            values_display=dict(OPTIONAL_STEPS),
            title="Steps",
            description_md=(
                "This run skips the steps that are removed here. The other steps run if the file enables them and "
                "their interval has passed. Without the creation of missing target topics, their partitions fail."
            ),
            section=_BESIDE,
        ),
        "tasks": tasks_field(flow, section=_HOW),
        "max_seconds": seconds_field(
            title="Time budget (seconds)",
            description_md=(
                "No round starts after this time; a started round is finished. 0: one round. "
                f"Empty: **mirror.run.max.seconds** ({flow.copy_settings.run_max_seconds:g})."
            ),
            section=_HOW,
        ),
        "poll_seconds": seconds_field(
            title="Poll interval (seconds)",
            description_md=(
                "A run that has caught up checks for new records again after this time, until its time budget is used "
                "up. 0: the run ends when it has caught up. "
                f"Empty: **mirror.run.poll.seconds** ({flow.copy_settings.run_poll_seconds:g})."
            ),
            section=_HOW,
        ),
        "bytes_per_second": bytes_per_second_field(section=_HOW),
        "log_level": log_level_field(section=_HOW),
    }
