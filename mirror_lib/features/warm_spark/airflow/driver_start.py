"""The driver of a task, forked by a driver host that has imported everything already."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from mirror_lib.airflow.spark.connect_driver import StartedDriver
from mirror_lib.features.warm_spark.driver_host_protocol import DRIVER_HOST_VARIABLE, DriverRequest, current_umask
from mirror_lib.features.warm_spark.hosted_driver import NoDriverHostError, ask_for_driver

_log = logging.getLogger(__name__)


def start_on_host(command: Sequence[str], environment: Mapping[str, str], stack: ExitStack) -> StartedDriver | None:
    """Return the driver of a driver host, None if no suitable host exists."""
    host = os.environ.get(DRIVER_HOST_VARIABLE)
    if not host:
        return None
    python, _, module, *arguments = command
    request = DriverRequest(module, tuple(arguments), environment, str(Path.cwd()), current_umask())
    # The same two pipes as for a child process.
    with ExitStack() as ours, ExitStack() as theirs:
        given, kept = os.pipe()
        theirs.callback(os.close, given)
        ours.callback(os.close, kept)
        read, written = os.pipe()
        theirs.callback(os.close, written)
        output = ours.enter_context(open(read, errors="replace", newline="\n"))  # noqa: PTH123 - a descriptor
        try:
            driver = ask_for_driver(Path(host), request, (given, written, written), python=python)
        except NoDriverHostError as error:
            _log.info("The driver runs as a separate process: %s", error)
            return None
        ours.enter_context(driver)
        stack.enter_context(ours.pop_all())
    _log.info("The driver host runs the driver as process %d.", driver.pid)
    return StartedDriver(driver, output)
