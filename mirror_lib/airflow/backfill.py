"""For copies of `dags/backfills.py` of earlier versions: a feature makes the DAGs."""

from mirror_lib.airflow.dags import builder

build_backfill_dags = builder("backfills")
