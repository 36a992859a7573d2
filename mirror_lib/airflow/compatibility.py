"""Airflow's names for this package: from the installed Airflow, or stand-ins where Airflow runs in another environment.

With `mirror.airflow.execution = external`, Airflow starts `mirror airflow task` in this environment. The DAGs and tasks
of this package run there unchanged, with the stand-ins of the feature `external` in place of Airflow.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mirror_lib.airflow.installed import *  # noqa: F403

_INSTALLED = "mirror_lib.airflow.installed"
_chosen: list[str] = []


def use_stand_ins(module: str) -> None:
    """Do without Airflow in this process. Call it before anything else of this package is imported.

    Args:
        module: it has Airflow's names.

    Raises:
        RuntimeError: a module has the names of the installed Airflow already.
    """
    if _chosen == [_INSTALLED]:
        raise RuntimeError("this process uses the installed Airflow already")
    _chosen[:] = [module]


def is_external() -> bool:
    """Return True if Airflow runs in another environment."""
    return bool(_chosen) and _chosen != [_INSTALLED]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if not _chosen:
        _chosen.append(_INSTALLED)
    return getattr(import_module(_chosen[0]), name)
