"""The state folder of local use, and the environment variables that name this folder and the configuration."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

#: Overrides the state folder, to separate tests and a second demo from the first.
STATE_DIR_VARIABLE = "MIRROR_STATE_DIR"
#: The properties file whose flows Airflow serves, or several separated as in PATH.
CONFIG_VARIABLE = "MIRROR_CONFIG"


def project_root() -> Path:
    """Return the folder that holds `pyproject.toml`, or the current one if the package is installed without it."""
    candidate = Path(__file__).resolve().parents[2]
    return candidate if (candidate / "pyproject.toml").is_file() else Path.cwd()


def state_dir(environment: Mapping[str, str] = os.environ, project: Path | None = None) -> Path:
    """Return the folder of all local state; not created here.

    `MIRROR_STATE_DIR` of the environment, else `.mirror` in the project's folder.
    """
    override = environment.get(STATE_DIR_VARIABLE)
    return Path(override).absolute() if override else (project or project_root()) / ".mirror"


def local_config(environment: Mapping[str, str] = os.environ, project: Path | None = None) -> Path:
    """Return the configuration of the local clusters, the default of DAGs; it need not exist."""
    return state_dir(environment, project) / "mirror.properties"
