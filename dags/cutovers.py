"""One DAG per enabled flow of the configuration files that MIRROR_CONFIG names, for cutovers by hand; optional."""

import os
from pathlib import Path

from mirror_lib.airflow import get_parsing_context
from mirror_lib.airflow.files import config_files
from mirror_lib.features.cutover.airflow import build_cutover_dags

build_cutover_dags(
    config_files(os.environ, Path(__file__).resolve().parents[1]),
    only=get_parsing_context().dag_id,
)
