"""One DAG per flow with a failback flow, for failback after a disaster, from the files in MIRROR_CONFIG; optional."""

import os
from pathlib import Path

from mirror_lib.airflow import get_parsing_context
from mirror_lib.airflow.files import config_files
from mirror_lib.features.cutover.airflow.after_disaster import build_after_disaster_dags

build_after_disaster_dags(
    config_files(os.environ, Path(__file__).resolve().parents[1]),
    only=get_parsing_context().dag_id,
)
