"""One DAG per configuration file that MIRROR_CONFIG names, which writes the heartbeats of its clusters; optional."""

import os
from pathlib import Path

from mirror_lib.airflow import get_parsing_context
from mirror_lib.airflow.files import config_files
from mirror_lib.airflow.heartbeats import build_heartbeat_dags

build_heartbeat_dags(
    config_files(os.environ, Path(__file__).resolve().parents[1]),
    only=get_parsing_context().dag_id,
)
