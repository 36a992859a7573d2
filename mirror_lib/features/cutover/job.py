"""The command line of the cutover's Spark job, apart from Spark itself: `spark_jobs/cutover.py` brings the engine."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mirror_lib.config.loader import load
from mirror_lib.copy.job.report import error_report, write_report
from mirror_lib.errors import MirrorError
from mirror_lib.features.cutover.context import CutoverContext, Engine
from mirror_lib.features.cutover.job_arguments import CutoverArguments
from mirror_lib.features.cutover.machine import Machine, Progress, StepConfirmation
from mirror_lib.features.cutover.opening import open_cutover
from mirror_lib.features.cutover.report import progress_text
from mirror_lib.ledger.location import open_ledger
from mirror_lib.printable import Lines

_log = logging.getLogger("mirror")


def main(argv: Sequence[str], make_engine: Callable[[str], Engine]) -> int:
    """Run the job; return the exit code (0 done, 2 configuration, 3 needs an operator).

    Args:
        make_engine: given a name to show; starts nothing before it is used.
    """
    arguments = CutoverArguments.parse(argv)
    try:
        done = _run(arguments, make_engine)
    except MirrorError as error:
        _log.error("%s", error)
        _report(arguments, error_report(error))
        return error.exit_code
    _log.info("%s", Lines(progress_text(done)))
    _report(arguments, {"exit_code": done.exit_code, **as_data(done)})
    return done.exit_code


def _run(arguments: CutoverArguments, make_engine: Callable[[str], Engine]) -> Progress:
    config = load(arguments.config)
    with open_ledger(config) as ledger:
        definition = open_cutover(ledger, arguments.name)
        context = CutoverContext(
            definition=definition,
            config=config,
            ledger=ledger,
            by=arguments.by,
            engine=make_engine(f"mirror cutover {definition.name}"),
            report_progress=lambda text: _log.info("cutover %s: %s", definition.name, text),
        )
        confirmation = None
        if arguments.confirm is not None:
            confirmation = StepConfirmation(arguments.confirm, arguments.by, arguments.note or "")
        return Machine(context).run(
            until=arguments.until, wait_seconds=arguments.wait_seconds, confirmation=confirmation
        )


def as_data(done: Progress) -> dict[str, Any]:
    """Plain data for `--json`, the report file and XCom."""
    return {
        "cutover": done.definition.name,
        "flow": done.definition.flow,
        "state": done.state.value,
        "step": done.step.value,
        "now": done.present.state.value,
        "carried_out_by": None if done.present.carrier is None else done.present.carrier.by,
        "asks": None if done.present.state.question is None else done.present.state.question.value,
        "attempts": [attempt.to_dict() for attempt in done.attempts],
    }


def _report(arguments: CutoverArguments, content: Mapping[str, Any]) -> None:
    if arguments.report is not None:
        write_report(arguments.report, json.loads(json.dumps(content)))
