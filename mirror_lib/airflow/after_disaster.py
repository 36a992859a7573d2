"""For copies of `dags/after_disaster.py` of earlier versions: a feature makes the DAGs."""

from mirror_lib.airflow.dags import builder

build_after_disaster_dags = builder("after_disaster")
