"""The trigger form of an audit in Airflow, and reading its values inside a task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from mirror_lib.airflow import Param
from mirror_lib.airflow.forms.fields import chosen_values, seconds_field, text_field, topic_names, topics_field
from mirror_lib.config.model import FlowConfig

#: Seconds that records are awaited on the target.
WAIT_SECONDS = 60.0
_LONGEST = 40
_WHAT = "What to compare"


@dataclass(frozen=True, slots=True)
class AuditChoices:
    """The form values of one DAG run."""

    topics: tuple[str, ...] = ()
    #: Empty: by the setting.
    since: str = ""
    #: A share such as 1%; empty: everything.
    sample: str = ""
    wait: float = WAIT_SECONDS

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Self:
        """Read what Airflow has already validated against the form's JSON schema."""
        return cls(**chosen_values(cls, params))


def audit_form(flow: FlowConfig) -> dict[str, Param]:
    """Return the Params of an audit's DAG."""
    return {
        "topics": topics_field(
            title="Only these topics",
            description_md="Topic names or Java regular expressions. Empty: every topic of the flow. Such a run writes "
            "no metrics.",
            section=_WHAT,
            names=topic_names(flow.topics),
        ),
        "since": text_field(
            title="Since",
            description_md="Only newer records: **2h**, or a time such as **2026-01-31T00:00:00Z**; **all**: all "
            "records. Empty: **mirror.audit.since**.",
            section=_WHAT,
            maxLength=_LONGEST,
        ),
        "sample": text_field(
            title="Sample",
            description_md="Compare only ranges of so much of each partition: **1%**. Empty: everything. Such a run "
            "writes no metrics.",
            section=_WHAT,
            maxLength=_LONGEST,
        ),
        "wait": seconds_field(
            title="Wait (seconds)",
            description=f"Time that records are awaited on the target. Empty: {WAIT_SECONDS:g}.",
            section=_WHAT,
        ),
    }
