"""Runs a DAG with `dag.test` for each line of standard input.

In a process of its own: Airflow reads its environment when it is imported, and warns of things that are not ours.

A line is {"dag_id": .., "conf": {..}, "answer": path}; the answer is written to that path.
"""

import json
import os
import sys
from pathlib import Path


def main() -> None:
    from airflow.dag_processing.dagbag import DagBag

    for line in sys.stdin:
        request = json.loads(line)
        # Parsed anew: a run leaves its rendered templates in the operators, and real tasks have a process each. Airflow
        # 3.2 leaves the id of the last DAG, too.
        for name in [name for name in os.environ if name.startswith("_AIRFLOW_PARSING_CONTEXT")]:
            del os.environ[name]
        bag = DagBag(os.environ["AIRFLOW__CORE__DAGS_FOLDER"])
        answer = {"import_errors": bag.import_errors}
        dag = bag.dags.get(request["dag_id"])
        if dag is not None:
            run = dag.test(run_conf=request["conf"])
            instances = run.get_task_instances()
            answer["state"] = run.state
            answer["tasks"] = {instance.task_id: instance.state for instance in instances}
            answer["report"] = next(
                (each.xcom_pull(task_ids="report") for each in instances if each.task_id == "report"), None
            )
        draft = Path(request["answer"] + ".draft")
        draft.write_text(json.dumps(answer, default=str))
        draft.rename(request["answer"])


main()
