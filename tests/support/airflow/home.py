"""Homes of Airflow with a migrated metadata database, without migrating it each time.

`airflow db migrate` takes six seconds of a processor, most of them to load Airflow. The demo, `airflow standalone` and
the services of docker-compose.yaml make their databases themselves.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

from mirror_lib.features.demo.airflow import airflow_settings
from mirror_lib.features.demo.state import exclusive, jars_dir

_PROJECT = Path(__file__).resolve().parents[3]
_DATABASE, _FILE = "airflow.db", "airflow.cfg"
_HOME = "{{home}}"
_SECONDS = 180


def use_temporary_home() -> None:
    """Let this process import Airflow with a folder of its own, unless it has one."""
    home = tempfile.mkdtemp(prefix="mirror-airflow-")
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    os.environ.setdefault("AIRFLOW_HOME", home)
    os.environ.setdefault("AIRFLOW__CORE__LOAD_EXAMPLES", "False")


def migrate(home: Path) -> None:
    """Leave in a home, as `airflow_settings` has it, what `airflow db migrate` does."""
    made = _made()
    home.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(made / _DATABASE, home / _DATABASE)
    # Without this file each of Airflow's parts would write one with its own keys, and refuse what others have signed.
    (home / _FILE).write_text((made / _FILE).read_text().replace(_HOME, str(home)))
    (home / _FILE).chmod(0o600)


def _made() -> Path:
    """What all copy, kept beside the jars: Airflow's version says which tables and settings there are."""
    kept = jars_dir() / f"airflow-{version('apache-airflow-core')}"
    if not kept.is_dir():
        with exclusive(kept.with_name(f".{kept.name}.lock")):
            if not kept.is_dir():
                _make(kept)
    return kept


def _make(kept: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="mirror-airflow-") as temporary:
        home, draft = Path(temporary) / "airflow", kept.with_name(f".{kept.name}.draft")
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("AIRFLOW_")}
        subprocess.run(
            [sys.executable, "-m", "airflow", "db", "migrate"],
            env={**inherited, **airflow_settings(home, _PROJECT, port=8080)},
            check=True,
            capture_output=True,
            timeout=_SECONDS,
        )
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir()
        # Whatever of the database is still in its log comes along.
        with closing(sqlite3.connect(home / _DATABASE)) as database:
            database.execute("VACUUM INTO ?", (str(draft / _DATABASE),))
        (draft / _FILE).write_text((home / _FILE).read_text().replace(str(home), _HOME))
        draft.rename(kept)
