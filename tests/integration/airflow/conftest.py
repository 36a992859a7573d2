"""Airflow reads its environment when it is imported, so the folder of its files is chosen before any test module is."""

import atexit
import os
import shutil
import tempfile

_home = tempfile.mkdtemp(prefix="mirror-airflow-integration-")
atexit.register(shutil.rmtree, _home, ignore_errors=True)
os.environ.setdefault("AIRFLOW_HOME", _home)
os.environ.setdefault("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
# Tasks look their connections up; a local master needs nothing but Java.
os.environ.setdefault("AIRFLOW_CONN_SPARK_DEFAULT", "spark://local")
