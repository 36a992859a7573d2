"""One DAG per enabled flow of the configuration files that MIRROR_CONFIG names, for cutovers by hand; optional."""

import os
from pathlib import Path

from mirror_lib.airflow.compatibility import get_parsing_context
from mirror_lib.airflow.cutover.dag import build_cutover_dags
from mirror_lib.airflow.files.flow_dags import config_files

build_cutover_dags(
    config_files(os.environ, Path(__file__).resolve().parents[1]),
    only=get_parsing_context().dag_id,
)
