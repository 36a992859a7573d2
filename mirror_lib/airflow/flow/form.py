"""The trigger form of a flow in Airflow, and reading its values inside a task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mirror_lib.airflow.compatibility import Param
from mirror_lib.airflow.forms import (
    USUAL_LOG_LEVEL,
    YEAR_SECONDS,
    bytes_per_second_field,
    chosen_topics,
    chosen_whole,
    literal,
    log_level_field,
    tasks_field,
    topic_names,
    topics_field,
)
from mirror_lib.config import FlowConfig
from mirror_lib.relay.job import ASK, GAP_CHOICES

#: Task id -> its label on the form, in the order of the DAG. Each can be skipped on its own.
OPTIONAL_STEPS = {
    "emit_heartbeats": "write heartbeats into the source",
    "sync_topics": "make missing target topics and partitions",
    "sync_topic_configs": "carry over topic configs",
    "sync_topic_acls": "carry over ACLs",
    "heartbeats": "check heartbeats on the target",
    "translate_offsets": "translate positions of groups, write checkpoints",
    "sync_group_offsets": "commit translated positions on the target",
    "announce_new_records": "trigger DAGs that wait for new records",
}


_WHAT, _BESIDE, _HOW = "What to copy", "Beside the copy", "How to run"


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
    left_out: frozenset[str] = frozenset()
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
            left_out=frozenset(OPTIONAL_STEPS).difference(params.get("steps", OPTIONAL_STEPS) or ()),
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
                "Names of topics or Java regular expressions; empty copies every topic that the flow selects. "
                "A run can only narrow the flow's own selection, which is:\n\n"
                + "\n".join(f"- {literal(pattern)}" for pattern in flow.topics)
            ),
            section=_WHAT,
            names=topic_names(flow.topics),
        ),
        "dry_run": Param(
            False,
            type="boolean",
            title="Dry run",
            description="Work out and print what the run would do on both clusters, and change nothing.",
            section=_WHAT,
        ),
        "gaps": Param(
            ASK,
            type="string",
            enum=list(GAP_CHOICES),
            title="Lost records",
            description_md=(
                "What this run does where the source lost records before they were copied, was truncated, or was "
                "created again:\n\n"
                "- **ask**: nothing; the partition stands still until somebody decides (**mirror gaps**)\n"
                "- **accept**: goes on behind what is lost\n"
                "- **recopy**: copies the source again from its start, behind what stands on the target\n\n"
                "The ledger keeps that this run decided so."
            ),
            section=_WHAT,
        ),
        "steps": Param(
            list(OPTIONAL_STEPS),
            type=["null", "array"],
            items={"type": "string", "enum": list(OPTIONAL_STEPS)},
            examples=list(OPTIONAL_STEPS),
            values_display=dict(OPTIONAL_STEPS),
            title="Steps beside the copy",
            description_md=(
                "What is taken away is not done by this run. Where a step stays, the file decides whether it is on and "
                "whether its interval has passed. Where missing target topics are not made, their partitions fail."
            ),
            section=_BESIDE,
        ),
        "tasks": tasks_field(flow, section=_HOW),
        "max_seconds": Param(
            None,
            type=["null", "number"],
            minimum=0,
            maximum=YEAR_SECONDS,
            title="Time budget (seconds)",
            description_md=(
                "No new round begins after this time; a round that has begun is finished. 0 makes one round. "
                f"Empty means **mirror.run.max.seconds** ({flow.copy_settings.run_max_seconds:g})."
            ),
            section=_HOW,
        ),
        "poll_seconds": Param(
            None,
            type=["null", "number"],
            minimum=0,
            maximum=YEAR_SECONDS,
            title="Look again after (seconds)",
            description_md=(
                "A run that has caught up looks for new records again after this time, until its time budget is used "
                "up. 0: it ends when it has caught up. "
                f"Empty means **mirror.run.poll.seconds** ({flow.copy_settings.run_poll_seconds:g})."
            ),
            section=_HOW,
        ),
        "bytes_per_second": bytes_per_second_field(section=_HOW),
        "log_level": log_level_field(section=_HOW),
    }
