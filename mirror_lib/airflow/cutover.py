"""For copies of `dags/cutovers.py` of earlier versions: a feature makes the DAGs."""

from mirror_lib.airflow.dags import builder

build_cutover_dags = builder("cutovers")
