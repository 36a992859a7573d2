"""One DAG per flow with mirror.audit.schedule, which audits its copies, from the files in MIRROR_CONFIG; optional."""

import os
from pathlib import Path

from mirror_lib.airflow import build_dags, get_parsing_context
from mirror_lib.airflow.files import config_files

build_dags(
    "audits",
    config_files(os.environ, Path(__file__).resolve().parents[1]),
    only=get_parsing_context().dag_id,
)
