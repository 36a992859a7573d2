"""Airflow reads its environment when it is imported, so the folder of its files is chosen before any test module is."""

import os

from tests.support.airflow.home import use_temporary_home

use_temporary_home()
# Tasks look their connections up; a local master needs nothing but Java.
os.environ.setdefault("AIRFLOW_CONN_SPARK_DEFAULT", "spark://local")
