"""The configuration files that Airflow serves."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from mirror_lib.config.local_state import CONFIG_VARIABLE, local_config


def served_files(environment: Mapping[str, str], project: Path) -> list[Path]:
    """Return the files to serve: `MIRROR_CONFIG`, else the file of `mirror dev up`, else the example."""
    named = [Path(part) for part in environment.get(CONFIG_VARIABLE, "").split(os.pathsep) if part.strip()]
    if named:
        return named
    local = local_config(environment, project)
    return [local if local.is_file() else project / "examples" / "mirror.properties"]
