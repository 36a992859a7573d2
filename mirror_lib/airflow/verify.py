"""For copies of `dags/verifications.py` of earlier versions: a feature makes the DAGs."""

from mirror_lib.airflow.dags import builder

build_verify_dags = builder("verifications")
