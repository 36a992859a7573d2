"""All DAGs of this project by one call, for DAG files in a folder of one's own:

# Airflow looks for DAGs in files that speak of them.
from mirror_lib.airflow.dags import mirror_dags

globals().update(mirror_dags("/etc/mirror/mirror.properties"))
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from mirror_lib.airflow.compatibility import DAG, get_parsing_context
from mirror_lib.airflow.files import broken_files_dag, config_files, problems_of
from mirror_lib.config.local_state import CONFIG_VARIABLE
from mirror_lib.errors import ConfigurationError
from mirror_lib.installed_features import imported, installed_features
from mirror_lib.past_runs.airflow_runs import BROKEN_FILES_DAG

#: Kind of DAG -> its builder, imported on first use. Features add theirs.
_OWN: Final = {
    "flows": "mirror_lib.airflow.files.flow_dags:build_flow_dags",
    "heartbeats": "mirror_lib.airflow.heartbeats.dag:build_heartbeat_dags",
}


def kinds() -> dict[str, str]:
    """Return the builder of each kind of DAGs, those of the features too; `mirror_dags` makes all by default."""
    # The first one counts, as for commands.
    added = {kind: builder for each in installed_features().ready[::-1] for kind, builder in each.dags.items()}
    return _OWN | added | _OWN


def mirror_dags(
    config: str | Path | Iterable[str | Path] | None = None, *, only: Iterable[str] | None = None
) -> dict[str, DAG]:
    """Return the DAGs of every enabled flow of configuration files, by DAG id.

    The process of a task gets just the DAG that it runs. No cluster is contacted, and the DAGs hold no secrets.

    Args:
        config: one file or several; None takes those that the environment variable `MIRROR_CONFIG` names.
        only: which kinds of DAGs: `flows`, `verifications`, `backfills`, `cutovers`,
            `after_disaster`, `heartbeats`, and those of other packages' features; default: all.

    An additional DAG, `mirror_broken_files`, shows the problems of broken files; so do the DAGs made from such a file.

    Raises:
        ConfigurationError: no file is named, none can be used, or there is no such kind. Airflow shows it as the
            import error of the DAG file.
    """
    paths = _paths(config)
    wanted = get_parsing_context().dag_id
    dags: dict[str, DAG] = {}
    problems: dict[str, None] = {}
    for build in [builder(kind) for kind in (kinds() if only is None else only)]:
        try:
            dags |= build(paths, only=wanted)
        except ConfigurationError as error:
            problems[str(error)] = None
    if wanted in (None, BROKEN_FILES_DAG):
        problems = dict.fromkeys(problems_of(paths))
    if problems and not dags and wanted != BROKEN_FILES_DAG:
        # No other DAGs exist that this error could remove.
        raise ConfigurationError("\n".join(problems))
    if problems and wanted in (None, BROKEN_FILES_DAG):
        dags[BROKEN_FILES_DAG] = broken_files_dag(problems)
    return dags


def _paths(config: str | Path | Iterable[str | Path] | None) -> list[Path]:
    if config is None:
        if not os.environ.get(CONFIG_VARIABLE, "").strip():
            raise ConfigurationError(
                "no configuration file is set.",
                action=f"Pass its path to mirror_dags, or set {CONFIG_VARIABLE} for all Airflow components.",
            )
        return config_files(os.environ, Path())
    return [Path(config)] if isinstance(config, str | Path) else [Path(each) for each in config]


def builder(kind: str) -> Callable[..., dict[str, DAG]]:
    """Return what makes the DAGs of a kind, called with configuration files and `only`.

    Raises:
        ConfigurationError: there is no such kind, or its feature cannot be used here.
    """
    found = kinds().get(kind)
    if found is None:
        for each in installed_features().failed:
            if each.feature is not None and kind in each.feature.dags:
                raise ConfigurationError(f"{kind} need the feature {each.name}: {each.why}.", action=each.action)
        raise ConfigurationError(f"unknown kind of DAGs {kind!r}.", action=f"Use one of {', '.join(kinds())}.")
    return imported(found)


def build_dags(kind: str, paths: Iterable[Path], only: str | None = None) -> dict[str, DAG]:
    """Return the DAGs of a kind, also if a feature makes them; with `only`, just the DAG of that id."""
    return builder(kind)(paths, only=only)
