"""One DAG per enabled flow of the configuration files that MIRROR_CONFIG names."""

import os
from pathlib import Path

from mirror_lib.airflow import get_parsing_context
from mirror_lib.airflow.files import build_flow_dags, config_files

# A module-level mapping of DAGs is not searched by Airflow, but DAGs made in a `with` block register themselves.
build_flow_dags(
    config_files(os.environ, Path(__file__).resolve().parents[1]),
    only=get_parsing_context().dag_id,
)
