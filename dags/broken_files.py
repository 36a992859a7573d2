"""Makes no DAG: raises what is wrong with the files that MIRROR_CONFIG names, as an import error that stops no DAG."""

import os
from pathlib import Path

from mirror_lib.airflow.compatibility import get_parsing_context
from mirror_lib.airflow.files.broken_files import raise_for_broken_files
from mirror_lib.airflow.files.flow_dags import config_files

# A process that runs one task has its DAG from another file.
if get_parsing_context().dag_id is None:
    raise_for_broken_files(config_files(os.environ, Path(__file__).resolve().parents[1]))
