"""One DAG per enabled flow of the configuration files that MIRROR_CONFIG names, which compares its target; optional."""

import os
from pathlib import Path

from mirror_lib.airflow import build_dags, get_parsing_context
from mirror_lib.airflow.files import config_files

build_dags(
    "verifications",
    config_files(os.environ, Path(__file__).resolve().parents[1]),
    only=get_parsing_context().dag_id,
)
