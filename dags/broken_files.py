"""Makes no DAG: raises what is wrong with the files that MIRROR_CONFIG names, as an import error that stops no DAG."""

import os
from pathlib import Path

from mirror_lib.airflow import get_parsing_context
from mirror_lib.airflow.files import config_files, raise_for_broken_files

# A process that runs one task has its DAG from another file.
if get_parsing_context().dag_id is None:
    raise_for_broken_files(config_files(os.environ, Path(__file__).resolve().parents[1]))
