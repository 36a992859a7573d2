"""Tasks of the DAG for the return after a disaster: plan, and hand over what the operator approved."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mirror_lib.airflow import AirflowFailException
from mirror_lib.airflow.forms.fields import chosen_topics
from mirror_lib.features.cutover.airflow.approval import ABOUT, PATIENCE_SECONDS, answer_to
from mirror_lib.features.cutover.failback.after_disaster import apply_return
from mirror_lib.features.cutover.failback.return_plan import plan_return
from mirror_lib.features.cutover.states.disaster import DisasterState, do
from mirror_lib.ledger.handovers import enabled_opposite_of, load_flow_as_it_runs
from mirror_lib.ledger.location import open_ledger
from mirror_lib.topology.names import FlowId

if TYPE_CHECKING:
    from mirror_lib.features.cutover.failback.return_plan import ReturnPlan

_log = logging.getLogger(__name__)
#: Partitions that are listed one by one.
_MOST_ERRORS = 50
_ALL = (".*",)


def look(flow: str, config_path: str, params: Mapping[str, Any]) -> dict[str, str]:
    """Plan the return; return the plan as text, and its fingerprint."""
    file, settings = load_flow_as_it_runs(Path(config_path), flow)
    plan = plan_return(settings, enabled_opposite_of(file, settings), _topics(params))
    for each in plan.partitions:
        _log.info("%s", each)
    if plan.staying:
        _log.info("%s", plan.staying_text)
    _refuse(plan)
    return {"told": plan.markdown(_MOST_ERRORS), "agreed": plan.fingerprint}


def hand_over(
    flow: str,
    config_path: str,
    asked_by: str,
    params: Mapping[str, Any],
    patience_seconds: float = PATIENCE_SECONDS,
    **context: Any,
) -> dict[str, Any]:
    """Apply the plan that the operator approved, if it is still the same."""
    answer = answer_to(context["ti"], asked_by, patience_seconds)
    if answer is None:
        raise AirflowFailException(
            f"not approved; nothing was changed. The logs of the earlier tasks may show why. {_begin_again(flow)}"
        )
    if not answer.agrees:
        raise AirflowFailException(f"rejected by {answer.by}; nothing was changed. {_begin_again(flow)}")
    # The plan that was shown, not a later one.
    agreed: str = context["ti"].xcom_pull(task_ids=asked_by, key=ABOUT)
    file, settings = load_flow_as_it_runs(Path(config_path), flow)
    opposite = enabled_opposite_of(file, settings)
    if opposite is None:
        raise AirflowFailException(
            f"flow {settings.flow.opposite} is no longer enabled in the file; nothing was changed. Enable it. "
            f"{_begin_again(flow)}"
        )
    note = (params.get("note") or "").strip() or None
    with open_ledger(file) as ledger:
        plan = apply_return(settings, opposite, ledger, _topics(params), agreed=agreed, by=answer.by, note=note)
    _refuse(plan)
    _log.info("Handed over: %s", plan)
    return {"partitions": len(plan.partitions), "left_behind": plan.left_behind, "flow_back": str(opposite.flow)}


def _begin_again(flow: str) -> str:
    return do(DisasterState.NOT_AGREED, FlowId.parse(flow))


def _topics(params: Mapping[str, Any]) -> Sequence[str]:
    return chosen_topics(params) or _ALL


def _refuse(plan: ReturnPlan) -> None:
    """Fail the task if a partition cannot be handed over: then none is."""
    if plan.errors:
        errors = "\n".join(str(error) for error in plan.errors[:_MOST_ERRORS])
        raise AirflowFailException(
            f"{len(plan.errors):,} of {len(plan.partitions):,} partitions cannot be handed over, so none was. "
            f"Follow the action of each error, or exclude its topic:\n{errors}"
        )
