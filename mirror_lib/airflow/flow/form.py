"""The trigger form of a flow in Airflow, and reading its values inside a task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mirror_lib.airflow.compatibility import Param
from mirror_lib.airflow.forms.fields import (
    USUAL_LOG_LEVEL,
    bytes_per_second_field,
    choice_field,
    chosen_topics,
    chosen_whole,
    flag_field,
    literal,
    log_level_field,
    seconds_field,
    tasks_field,
    topic_names,
    topics_field,
)
from mirror_lib.config.model import FlowConfig
from mirror_lib.copy.job.arguments import ASK, GAP_CHOICES

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


@dataclass(frozen=True, slots=True)
class TriggerChoices:
    """The form values of one DAG run; scheduled runs have the defaults."""

    topics: tuple[str, ...] = ()
    tasks: int | None = None
    max_seconds: float | None = None
    poll_seconds: float | None = None
    dry_run: bool = False
    gaps: str = ASK
    #: Sync steps that this run skips (`OPTIONAL_STEPS`).
    excluded_steps: frozenset[str] = frozenset()
    bytes_per_second: int | None = None
    log_level: str = USUAL_LOG_LEVEL

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> TriggerChoices:
        """Read what Airflow has already validated against the form's JSON schema."""
        return cls(
            topics=chosen_topics(params),
            tasks=chosen_whole(params, "tasks"),
            max_seconds=params.get("max_seconds"),
            poll_seconds=params.get("poll_seconds"),
            dry_run=bool(params.get("dry_run")),
            gaps=params.get("gaps") or ASK,
            # Airflow's form sends no value, instead of an empty list, for a list that was emptied.
            excluded_steps=frozenset(OPTIONAL_STEPS).difference(params.get("steps", OPTIONAL_STEPS) or ()),
            bytes_per_second=chosen_whole(params, "bytes_per_second"),
            log_level=params.get("log_level") or USUAL_LOG_LEVEL,
        )

    @property
    def are_usual(self) -> bool:
        """True if the run is like a scheduled one; its log level may differ."""
        return replace(self, log_level=USUAL_LOG_LEVEL) == TriggerChoices()


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
