"""One DAG per flow with a failback flow, for the return after a lost source is restored; triggered by hand."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from mirror_lib.airflow.after_disaster import tasks as tasks
from mirror_lib.airflow.approval import AskOperator
from mirror_lib.airflow.compatibility import DAG, Param, TriggerRule
from mirror_lib.airflow.files import dags_of_flows
from mirror_lib.airflow.forms import LINES, literal, put_form, topics_field
from mirror_lib.airflow.python_task import PythonTask
from mirror_lib.config import FlowConfig, MirrorConfig
from mirror_lib.ledger import enabled_opposite_of
from mirror_lib.observe import dag_id_of

_START = datetime(2024, 1, 1, tzinfo=UTC)
_TIMEOUT = timedelta(hours=2)
_SECTION = "What comes home"
_LONGEST_NOTE = 2_000
_DOCUMENTATION = """\
The source was lost, clients went on on the target, and the source is there again. Keep everybody away from it, and
leave the flow's own DAG paused.

This DAG looks what the source alone has, and what was written to the target since; asks on Airflow's page of required
actions; and hands the topics over to the flow back, which brings home what came since, behind what the source has. What
never came to the target is kept in the ledger, as a gap of cause **disaster**. All partitions are handed over, or none.

Then unpause the DAG of the flow back. docs/runbooks.md, 6 and 7, has the whole way; `mirror cutover after-disaster`
does the same from a console.
"""


def build_after_disaster_dags(paths: Iterable[Path], only: str | None = None) -> dict[str, DAG]:
    """Return the DAGs for flows that have a failback flow, as `flow_dags.dags_of_flows` makes them."""
    return dags_of_flows(
        paths, only, dag_id=after_disaster_dag_id, build=build_after_disaster_dag, takes=_has_a_way_back
    )


def build_after_disaster_dag(flow: FlowConfig, config_path: Path | str) -> DAG:
    """Return the DAG of one flow: look -> agreed -> hand_over."""
    source, target = flow.flow.source, flow.flow.target
    given = {"flow": str(flow.flow), "config_path": str(config_path)}
    with DAG(
        dag_id=after_disaster_dag_id(flow),
        dag_display_name=f"After a disaster {source} → {target}",
        description=f"Cluster {source} was lost and is back: what was written to {target} since comes home",
        doc_md=_DOCUMENTATION,
        schedule=None,
        start_date=_START,
        catchup=False,
        max_active_runs=1,
        tags=sorted({"mirror", "disaster", source, target}),
        # Every refusal needs an operator: retries cannot help.
        default_args={"owner": "mirror", "retries": 0},
    ) as dag:
        looked = PythonTask.of(tasks.look, given, execution_timeout=_TIMEOUT)
        asked = AskOperator(
            task_id="agreed",
            subject=f"{source} is back. Is everybody away from it, and may it get what {target} has?",
            body=f"{{{{ ti.xcom_pull(task_ids='{looked.task_id}')['told'] }}}}",
            about=f"{{{{ ti.xcom_pull(task_ids='{looked.task_id}')['agreed'] }}}}",
        )
        handed_over = PythonTask.of(
            tasks.hand_over,
            {**given, "asked_by": asked.task_id},
            execution_timeout=_TIMEOUT,
            # Airflow may fail a question and still pass its answer on.
            trigger_rule=TriggerRule.NONE_SKIPPED,
        )
        looked >> asked >> handed_over
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
            description_md="One name or Java regular expression a line, of the source. Empty: all of the flow, "
            + ", ".join(literal(pattern) for pattern in flow.topics),
            section=_SECTION,
        ),
        "note": Param(
            None,
            type=["null", "string"],
            format=LINES,
            maxLength=_LONGEST_NOTE,
            title="Note",
            description_md="Who decided, and why; stands in the ledger with what was lost.",
            section=_SECTION,
        ),
    }


def _has_a_way_back(config: MirrorConfig, flow: FlowConfig) -> bool:
    opposite = enabled_opposite_of(config, flow)
    return opposite is not None and opposite.way_back
