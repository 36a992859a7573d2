"""Where the ledger is: what the configuration names, or a SQLite file in the state folder."""

from __future__ import annotations

import os
from pathlib import Path

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from mirror_lib.config.model import MirrorConfig

#: Overrides the folder of local state.
STATE_DIR_VARIABLE = "MIRROR_STATE_DIR"
FILE_NAME = "ledger.sqlite3"


def ledger_url(config: MirrorConfig) -> str:
    """The ledger's URL. A relative SQLite path counts from the configuration file: Airflow, Spark and people run the
    same file from different folders."""
    if config.ledger_url is None:
        return default_ledger_url()
    try:
        url = make_url(config.ledger_url)
    except (ArgumentError, ValueError):
        # `Ledger.open` says what is wrong, without showing the text.
        return config.ledger_url
    if url.get_backend_name() != "sqlite" or not url.database or url.database == ":memory:":
        return config.ledger_url
    path = Path(config.path).absolute().parent / url.database
    return url.set(database=str(path)).render_as_string(hide_password=False)


def default_ledger_url() -> str:
    """`ledger.sqlite3` in the state folder."""
    return f"sqlite:///{state_dir() / FILE_NAME}"


def state_dir() -> Path:
    """`MIRROR_STATE_DIR`, else `.mirror` in the project's folder; in the current one without a project around."""
    override = os.environ.get(STATE_DIR_VARIABLE)
    if override:
        return Path(override).absolute()
    project = Path(__file__).resolve().parents[2]
    return (project if (project / "pyproject.toml").is_file() else Path.cwd()) / ".mirror"
