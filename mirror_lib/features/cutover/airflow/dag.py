"""One DAG per flow for cutovers, triggered by hand: operators approve in Airflow, and one Spark job does the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from mirror_lib.airflow import DAG, PythonTask, Template, TriggerRule, new_dag, untemplated
from mirror_lib.airflow.files import dags_of_flows
from mirror_lib.airflow.forms.fields import put_form
from mirror_lib.airflow.spark.pool import pool_of
from mirror_lib.config.model import FlowConfig
from mirror_lib.features.cutover.airflow.approval import PASSED, AskOperator
from mirror_lib.features.cutover.airflow.form import cutover_form
from mirror_lib.features.cutover.airflow.operator import CutoverOperator
from mirror_lib.features.cutover.model import Step
from mirror_lib.past_runs.airflow_runs import cutover_dag_id_of

_NAME = Template("{{ ti.xcom_pull(task_ids='begin') }}")
_CARRIES = "carry_out"
_TASKS = "mirror_lib.features.cutover.airflow.tasks"
_BEGIN = "Defines the cutover, or finds the existing one; or rolls it back if that action was chosen."
_PREPARE = "Takes the inventory and checks if all topics and groups can move."
_AWAIT = """\
Waits until the process of this run asks for an answer, or is past that step.

Does not wait for an ended process of an earlier DAG run. If the task of the Spark job was cleared, it starts a new
process, which checks all gates again before it asks.
"""
_ANSWER = """\
Passes the operator's answer on to the Spark job, unless the step was confirmed before.

A question that failed without an answer counts as No: otherwise the Spark job would wait for an answer that cannot
come. An answer to a cutover without a running process is rejected.
"""
_REPORT = "Prints the timeline; fails the run if the cutover has not finished."
_DOCUMENTATION = """\
Moves the producers and consumers of some topics from the source to the target. The steps are inventory, preflight,
rehearsal, freeze, drain, verification, groups, approval, switch, grants to write, and watch. A step passes only if all
its gates hold.

The run waits for two answers on Airflow's page of required actions: the confirmation that the producers are
**stopped**, and the **approval** of the switch, which shows the report of all gates. The producers are stopped between
the two, for seconds, because the Spark job is warm by then.

To continue a run that ended at a gate, trigger this DAG with the same name. Do not clear tasks: Airflow would show the
old text of the question, so the task fails. An answer counts only while the Spark job that asked is running: the answer
to an older question is rejected, with the advice to trigger again. The action `roll back` is possible until a client
has written to the target. After that, use the field `Failback of` on the cutover DAG of the failback flow: it copies
the changes back. See docs/runbooks.md. `mirror cutover` does the same on the command line.
"""


def build_cutover_dags(paths: Iterable[Path], only: str | None = None) -> dict[str, DAG]:
    """Return the cutover DAGs, as `flow_dags.dags_of_flows` makes them."""
    return dags_of_flows(paths, only, dag_id=cutover_dag_id, build=build_cutover_dag)


def build_cutover_dag(flow: FlowConfig, config_path: Path | str) -> DAG:
    """The DAG of one flow's cutovers.

    begin -> prepare -> carry_out ------------------------------------------------> report
                    \\-> gates_of_freeze -> writers_stopped -> note_freeze
                          -> gates_of_approve -> agreed -> note_approve ---------/
    """
    source, target = flow.flow.source, flow.flow.target
    name, path = str(flow.flow), str(config_path)
    with new_dag(
        cutover_dag_id(flow),
        f"Cutover {source} → {target}",
        f"Moves producers and consumers from cluster {source} to cluster {target}",
        _DOCUMENTATION,
        tags={"cutover", source, target},
        # A gate that does not hold needs an operator: nothing is retried automatically.
        task_settings={"retries": 0},
    ) as dag:
        begin = _python("begin", _BEGIN, flow=name, config_path=path)
        given: dict[str, Any] = {"flow": name, "config_path": path, "name": _NAME}
        prepare = _python("prepare", _PREPARE, **given)
        carry_out = CutoverOperator(
            task_id=_CARRIES,
            flow=name,
            config_path=path,
            named_by=begin.task_id,
            answered_by=f"note_{Step.APPROVE.value}",
            conn_id=flow.spark_connection,
            pool=pool_of(flow),
            doc_md="The Spark job: rehearses, keeps the lag small, drains, verifies, and switches.",
        )
        frozen = _question(
            Step.FREEZE,
            given,
            task_id="writers_stopped",
            subject=f"Cutover {_NAME}: are all producers of these topics on {untemplated(source)} stopped?",
            effect="**Yes**: the remaining records are copied and compared, then the approval is asked. **No**: this "
            "run ends; the cutover can be continued or rolled back.",
        )
        approved = _question(
            Step.APPROVE,
            given,
            task_id="agreed",
            subject=f"Cutover {_NAME}: all records are on {untemplated(target)}. Approve the switch of producers and "
            f"consumers to {untemplated(target)}?",
            effect="**Yes**: this flow stops copying these topics, and grants to write are created on "
            f"{untemplated(target)}. Start the clients there when the step `release` has passed. **No**: this run "
            "ends; the producers stay stopped until the cutover is continued or rolled back.",
        )
        report = _python("report", _REPORT, **given, trigger_rule=TriggerRule.NONE_SKIPPED)
        begin >> prepare >> [carry_out, frozen[0]]
        frozen[-1] >> approved[0]
        [carry_out, approved[-1]] >> report
    put_form(dag, cutover_form(flow))
    return dag


def cutover_dag_id(flow: FlowConfig) -> str:
    """Return `mirror_cutover__<source>__<target>`."""
    return cutover_dag_id_of(flow.flow)


def _question(step: Step, of: Mapping[str, Any], *, task_id: str, subject: str, effect: str) -> tuple[Any, Any]:
    """Wait until the question can be asked, ask with the effect and the gates as body, pass the answer on; return first
    and last task.
    """
    given = {**of, "step": step.value, "carried_by": _CARRIES}
    gates = _python("await_question", _AWAIT, task_id=f"gates_of_{step.value}", **given)
    # The answers' effects first: the table of gates is longer than the screen.
    body = f"{effect}\n\n{{{{ ti.xcom_pull(task_ids='{gates.task_id}') }}}}"
    before = f"{{{{ ti.xcom_pull(task_ids='{gates.task_id}', key='{PASSED}') or '' }}}}"
    approval = AskOperator(task_id=task_id, subject=subject, body=body, answered_before=before)
    noted = _python(
        "answer",
        _ANSWER,
        task_id=f"note_{step.value}",
        asked_by=task_id,
        trigger_rule=TriggerRule.NONE_SKIPPED,
        **given,
    )
    gates >> approval >> noted
    return gates, noted


def _python(
    function: str,
    documentation: str,
    *,
    task_id: str | None = None,
    trigger_rule: TriggerRule | None = None,
    **given: str | Template,
) -> PythonTask:
    more: dict[str, Any] = {} if trigger_rule is None else {"trigger_rule": trigger_rule}
    # Operators need time; a question that is open for a week is considered abandoned.
    return PythonTask.of(
        f"{_TASKS}:{function}", documentation, given, task_id=task_id, execution_timeout=timedelta(days=7), **more
    )
