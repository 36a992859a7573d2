"""The trigger form of a cutover in Airflow, and reading its values inside a task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mirror_lib.airflow import Param
from mirror_lib.airflow.forms.fields import (
    WEEK_SECONDS,
    choice_field,
    chosen_values,
    flag_field,
    limit_field,
    literal,
    names_field,
    patterns_field,
    text_field,
    topics_field,
)
from mirror_lib.config.model import FlowConfig
from mirror_lib.errors import ConfigurationError
from mirror_lib.features.cutover.model import CutoverDefinition, Fence, Style, VerifyScope
from mirror_lib.former_names import FIELDS

_WHAT, _HOW, _LIMITS = "What to move", "How to move", "Limits"
#: Names that `CutoverDefinition` accepts, or empty.
_NAME = "^ *([A-Za-z0-9][A-Za-z0-9._-]{0,99})? *$"
#: Actions of a DAG run.
GO_ON, ROLL_BACK = "go on", "roll back"


def cutover_form(flow: FlowConfig) -> dict[str, Param]:
    """Return the Params of a flow's cutover DAG. All but the name matter only when the cutover is created."""
    return {
        "name": text_field(
            pattern=_NAME,
            title="Name",
            description_md="Name of the cutover; letters, digits, dots, underscores and hyphens. Empty: the DAG run's "
            "id. A cutover that has begun continues where it is: give its **name alone**. Its other fields cannot be "
            "changed, except the action and the hours: a run with other values fails.",
            section=_WHAT,
        ),
        "action": choice_field(
            GO_ON,
            (GO_ON, ROLL_BACK),
            shown={GO_ON: "Start or continue", ROLL_BACK: "Roll back"},
            title="Action",
            description_md="**Roll back** undoes the cutover with this name. It is possible until a client has "
            "written to the target.",
            section=_WHAT,
        ),
        "back_of": text_field(
            pattern=_NAME,
            title="Failback of",
            description_md=f"The name of an earlier cutover of {literal(flow.flow.target)} → "
            f"{literal(flow.flow.source)}: this flow moves its topics and groups back, and copies only the changes "
            "since. Leave topics and groups below empty then.",
            section=_WHAT,
        ),
        "topics": topics_field(
            title="Topics",
            description_md="One name or Java regular expression per line, within the flow's selection: "
            + ", ".join(literal(pattern) for pattern in flow.topics),
            section=_WHAT,
        ),
        "groups": patterns_field(
            title="Groups",
            description_md="One name or Java regular expression per line; empty moves all groups of the flow that read "
            "these topics.",
            section=_WHAT,
        ),
        "style": choice_field(
            Style.TOGETHER,
            Style,
            shown={
                Style.TOGETHER: "Consumers and producers together",
                Style.CONSUMERS_FIRST: "Consumers first",
                Style.PRODUCERS_FIRST: "Producers first",
            },
            title="Order",
            description_md="**Together**: one window in which both are stopped. **Consumers first**: for consumers "
            "that start slowly; they lag by one run meanwhile. **Producers first**: for consumers that cannot stop in "
            "the window; no rollback after the first write to the target.",
            section=_HOW,
        ),
        "fence": choice_field(
            Fence.OPERATOR,
            Fence,
            shown={Fence.OPERATOR: "The owners stop their producers", Fence.ACL: "ACLs deny writes"},
            title="Fence of the producers",
            description_md="With ACLs, the principals below are denied writes to these topics on the source.",
            section=_HOW,
        ),
        "writers": names_field(
            pattern="^ *$|^ *[A-Za-z]+:.",
            title="Producers to deny",
            description_md="With ACLs: the principals to deny, one per line, for example **User:app**.",
            section=_HOW,
        ),
        "scope": choice_field(
            VerifyScope.RECENT,
            VerifyScope,
            title="What the rehearsal compares",
            description_md="**recent**: records that were never compared; **full**: all records. Records that arrive "
            "after the rehearsal are always compared in full.",
            section=_HOW,
        ),
        "quiet_seconds": _seconds(10.0, "Required time without new records on the source", _LIMITS),
        "drain_seconds": _seconds(600.0, "Maximum duration of the drain", _LIMITS),
        "watch_seconds": _seconds(300.0, "Maximum wait for clients on the target", _LIMITS),
        "max_lag": limit_field(10_000, title="Maximum lag when the producers are stopped (offsets)", section=_LIMITS),
        "max_duplicates": limit_field(0, title="Maximum duplicates (records, all groups)", section=_LIMITS),
        "max_skipped": limit_field(0, title="Maximum skipped (records, all groups)", section=_LIMITS),
        "may_split": patterns_field(
            title="Groups and transactional ids that may be split",
            description_md="Java regular expressions, one per line, of groups and ids that use both topics that move "
            "and topics that stay on the source.",
            section=_LIMITS,
        ),
        "may_reset": patterns_field(
            title="Groups that may start at their auto.offset.reset",
            description_md="Java regular expressions, one per line, of groups that have no offset in some partitions "
            "with records: there their consumers read all records (earliest) or skip them (latest).",
            section=_LIMITS,
        ),
        "require_failback": flag_field(
            default=True,
            title="Require failback",
            description_md="The cutover starts only if the file has an enabled failback flow.",
            section=_LIMITS,
        ),
        "with_withdrawn": flag_field(
            title="Release withdrawn grants",
            description_md="Also release grants that were revoked on the source after they were staged.",
            section=_LIMITS,
        ),
        "wait_hours": Param(
            12,
            type="number",
            minimum=0,
            maximum=WEEK_SECONDS // 3600,
            title="Time to wait for an answer (hours)",
            description_md="The Spark job waits this long for each of the two answers. Without an answer it ends.",
            section=_HOW,
        ),
    }


def _seconds(default: float, title: str, section: str) -> Param:
    return Param(default, type="number", minimum=0, maximum=WEEK_SECONDS, title=f"{title} (seconds)", section=section)


def definition_from(params: Mapping[str, Any], flow: str, name: str) -> CutoverDefinition:
    """Return the definition that the operator filled in.

    Raises:
        ConfigurationError: it is not a valid cutover.
    """
    return CutoverDefinition(**{"topics": (), **_values(params), "name": name, "flow": flow})


def refuse_other_values(params: Mapping[str, Any], created: CutoverDefinition) -> None:
    """Raise if an operator entered values that differ from those of the existing cutover: they would be ignored.

    A field at the form's default is not compared, because the name alone continues a cutover.

    Raises:
        ConfigurationError: the values differ; it names each field with both values.
    """
    differences = [
        f"{field} is {_shown(getattr(created, field))}, not {_shown(value)}"
        for field, value in _values(params).items()
        if value != getattr(created, field)
    ]
    if differences:
        raise ConfigurationError(
            f"cutover {created.name} exists with other values: {'; '.join(differences)}.",
            action="To continue it, trigger with its name alone. To change it, roll it back and start a new one with "
            "another name.",
        )


def _shown(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _values(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of `CutoverDefinition` that differ from the form's defaults, but the name."""
    # A trigger by API may still have former names; the present ones then have their defaults.
    params = {**given, **{FIELDS[name]: value for name, value in given.items() if name in FIELDS}, "name": None}
    return chosen_values(CutoverDefinition, params)
