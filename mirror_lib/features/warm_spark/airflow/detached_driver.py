"""A driver that does not end with the task that started it: a driver host forks it, and its output goes to a file."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from mirror_lib.airflow.spark.connect_driver import driver_environment, driver_python
from mirror_lib.features.warm_spark.driver_host_protocol import DRIVER_HOST_VARIABLE, DriverRequest, current_umask
from mirror_lib.features.warm_spark.hosted_driver import ask_for_driver
from mirror_lib.printable import Lines
from mirror_lib.private_files import is_private_folder
from mirror_lib.spark.connect_server import END_WITH_INPUT_VARIABLE

_log = logging.getLogger(__name__)
FOLDER_PREFIX = "mirror-driver-"
_LOG = "driver.log"
#: Folders of drivers whose tasks continued on other machines.
_KEPT_SECONDS = 7 * 86_400.0


def start_detached(module: str, arguments: Sequence[str], environment: Mapping[str, str], folder: Path) -> int:
    """Start a driver that continues when this process ends; return its process id.

    Args:
        environment: additional variables, for secrets and for the server's address.
        folder: of its log.

    Raises:
        NoDriverHostError: no suitable host exists; nothing was started.
    """
    whole = driver_environment(environment)
    # Such a driver would end at once: nobody writes to its input.
    whole.pop(END_WITH_INPUT_VARIABLE, None)
    request = DriverRequest(module, tuple(arguments), whole, str(folder), current_umask())
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        output = os.open(folder / _LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            host = Path(os.environ[DRIVER_HOST_VARIABLE])
            with ask_for_driver(host, request, (nothing, output, output), python=driver_python()) as driver:
                return driver.pid
        finally:
            os.close(output)
    finally:
        os.close(nothing)


def show_log(folder: Path) -> bool:
    """Copy the lines of a driver's log to the task's log, and remove the folder; return False if it is not here.

    The folder comes from the ledger, whose other writers must not choose what this task reads and removes.
    """
    if not is_driver_folder(folder):
        return False
    try:
        with (folder / _LOG).open(errors="replace", newline="\n") as lines:
            for line in lines:
                _log.info("%s", Lines(line.rstrip()))
    except FileNotFoundError:
        return False
    shutil.rmtree(folder, ignore_errors=True)
    return True


def is_driver_folder(folder: Path) -> bool:
    """Return True if a task of this user has made the folder for a driver."""
    return folder.name.startswith(FOLDER_PREFIX) and is_private_folder(folder)


def discard_old_folders() -> None:
    """Remove folders that no task will read any more."""
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*"):
        with suppress(OSError):
            if is_driver_folder(folder) and time.time() - folder.lstat().st_mtime > _KEPT_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)
