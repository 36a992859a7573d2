"""One DAG per flow with a failback flow, for the return after a lost source is restored; triggered by hand."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

from mirror_lib.airflow import DAG, Param, PythonTask, TriggerRule, new_dag, untemplated
from mirror_lib.airflow.files import dags_of_flows
from mirror_lib.airflow.forms.fields import literal, put_form, text_field, topics_field
from mirror_lib.airflow.forms.values import LINES
from mirror_lib.config.model import FlowConfig, MirrorConfig
from mirror_lib.features.cutover.airflow.approval import AskOperator
from mirror_lib.ledger.handovers import enabled_opposite_of
from mirror_lib.past_runs.airflow_runs import dag_id_of

_TIMEOUT = timedelta(hours=2)
_TASKS = "mirror_lib.features.cutover.airflow.after_disaster.tasks"
_SECTION = "What to copy back"
_LONGEST_NOTE = 2_000
_DOCUMENTATION = """\
For failback after a disaster: the source was lost, clients continued on the target, and the source is available again.
Keep all clients away from the source, and leave the DAG of the flow itself paused.

This DAG finds the records that only the source has, and the records that were written to the target since. It then
waits for an approval on Airflow's page of required actions, and hands the topics over to the failback flow. The
failback flow appends the new records of the target to the source. Records that were never copied to the target are
stored in the ledger as gaps with the cause **disaster**. Either all partitions are handed over, or none.

Next, unpause the DAG of the failback flow. See docs/runbooks.md, sections 6 and 7. `mirror cutover after-disaster` does
the same on the command line.
"""


def build_after_disaster_dags(paths: Iterable[Path], only: str | None = None) -> dict[str, DAG]:
    """Return the DAGs for flows that have a failback flow, as `flow_dags.dags_of_flows` makes them."""
    return dags_of_flows(
        paths, only, dag_id=after_disaster_dag_id, build=build_after_disaster_dag, takes=_has_failback_flow
    )


def build_after_disaster_dag(flow: FlowConfig, config_path: Path | str) -> DAG:
    """Return the DAG of one flow: look -> agreed -> hand_over."""
    source, target = flow.flow.source, flow.flow.target
    given = {"flow": str(flow.flow), "config_path": str(config_path)}
    with new_dag(
        after_disaster_dag_id(flow),
        f"Failback after a disaster {source} → {target}",
        f"Cluster {source} was lost and is available again: prepare to copy new records of {target} back",
        _DOCUMENTATION,
        max_active_runs=1,
        tags={"disaster", source, target},
        # Every refusal needs an operator: retries cannot help.
        task_settings={"retries": 0},
    ) as dag:
        looked = PythonTask.of(
            f"{_TASKS}:look",
            "Finds the records that only the source has, and the offsets from which to copy back. Changes nothing.",
            given,
            execution_timeout=_TIMEOUT,
        )
        approval = AskOperator(
            task_id="agreed",
            subject=f"Failback to {untemplated(source)}: are all clients stopped there, and may the records of "
            f"{untemplated(target)} be copied to it?",
            body=f"{{{{ ti.xcom_pull(task_ids='{looked.task_id}')['told'] }}}}",
            about=f"{{{{ ti.xcom_pull(task_ids='{looked.task_id}')['agreed'] }}}}",
        )
        handed_over = PythonTask.of(
            f"{_TASKS}:hand_over",
            "Hands the topics over to the failback flow, if the plan was approved and nothing has changed since.",
            {**given, "asked_by": approval.task_id},
            execution_timeout=_TIMEOUT,
            # Airflow may fail a question and still pass its answer on.
            trigger_rule=TriggerRule.NONE_SKIPPED,
        )
        looked >> approval >> handed_over
    put_form(dag, after_disaster_form(flow))
    return dag


def after_disaster_dag_id(flow: FlowConfig) -> str:
    """Return `mirror_after_disaster__<source>__<target>`."""
    return dag_id_of(flow.flow).replace("mirror", "mirror_after_disaster", 1)


def after_disaster_form(flow: FlowConfig) -> dict[str, Param]:
    """Return the Params of the DAG."""
    return {
        "topics": topics_field(
            title="Topics",
            description_md="Source topics: one name or Java regular expression per line. Empty: all topics of the "
            "flow, " + ", ".join(literal(pattern) for pattern in flow.topics),
            section=_SECTION,
        ),
        "note": text_field(
            format=LINES,
            maxLength=_LONGEST_NOTE,
            title="Note",
            description_md="Who decided, and why. Stored in the ledger with the gaps.",
            section=_SECTION,
        ),
    }


def _has_failback_flow(config: MirrorConfig, flow: FlowConfig) -> bool:
    opposite = enabled_opposite_of(config, flow)
    return opposite is not None and opposite.failback
