"""What triggers of this project need in Airflow's triggerer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from asgiref.sync import sync_to_async

from mirror_lib.printable_logs import make_logs_printable

if TYPE_CHECKING:
    from mirror_lib.config.model import MirrorConfig

make_logs_printable()


async def load_in_triggerer(path: Path) -> MirrorConfig:
    """Read a configuration file; it may have secrets from Airflow.

    They come over the triggerer's connection, which belongs to its event loop.
    """
    return await sync_to_async(_load, thread_sensitive=False)(path)


def _load(path: Path) -> MirrorConfig:
    from mirror_lib.airflow.secret_masking import task_secrets
    from mirror_lib.config.loader import load

    with task_secrets():
        return load(path)
