"""Validate the conf of a DAG run against its DAG's form.

The REST API and Airflow's command line accept any conf. Airflow rejects values that the form forbids, but passes on
keys that the form does not have: with a misspelt `dry_run` the run would copy for real. And clearing an old run repeats
it with its old conf.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from mirror_lib.airflow.compatibility import Context, ParamsDict, is_external
from mirror_lib.airflow.forms.values import value_problems
from mirror_lib.airflow.retries import failing_at_once
from mirror_lib.copy.job.arguments import ASK
from mirror_lib.errors import ConfigurationError
from mirror_lib.printable import END_OF_GROUP

_log = logging.getLogger(__name__)
#: A run is given up after a day; decisions about lost records refer to the records lost at that time.
_DECIDED_FOR = timedelta(days=2)


class CheckedConf:
    """Mixin of operators whose task rejects a run with a conf that its form does not have.

    It has to come before Airflow's operator among the bases.
    """

    def pre_execute(self, context: Context) -> None:
        """Called by Airflow in the task's process, right before `execute`; an exception here ends the task in the same
        way.
        """
        try:
            with failing_at_once():
                check_conf(context)
        except Exception:
            if not is_external():
                # Airflow's page shows the lines up to this one as a closed group, "Pre Execute": an operator would see
                # a log without an error.
                _log.info(END_OF_GROUP)
            raise
        super().pre_execute(context)  # type: ignore[misc]  # of Airflow's operator


def check_conf(context: Context) -> None:
    """Reject a run whose conf its form does not have.

    Raises:
        ConfigurationError: a key is unknown, a value cannot be used, Airflow does not pass the values on, or the run
            is an old one that decides about lost records.
    """
    run, dag = context.get("dag_run"), context.get("dag")
    conf: Mapping[str, Any] = (run.conf if run is not None else None) or {}
    if dag is None or not conf:
        return
    problems = list(conf_problems(conf, dag.params, context["params"]))
    if problems:
        fields = ", ".join(dag.params) or "none"
        raise ConfigurationError(
            f"this run of {dag.dag_id} was triggered with invalid values: {'; '.join(problems)}.",
            action=f"Nothing was done. Trigger the DAG again with valid values. Fields of the form: {fields}.",
        )
    if conf.get("gaps", ASK) != ASK:
        _refuse_old_decision(dag.dag_id, conf["gaps"], run.run_after)


def _refuse_old_decision(dag_id: str, gaps: str, triggered: datetime) -> None:
    if datetime.now(UTC) - triggered > _DECIDED_FOR:
        raise ConfigurationError(
            f"this run of {dag_id} was triggered at {triggered:%Y-%m-%d %H:%M} UTC with gaps={gaps}. That decision "
            "applied to the gaps of that time, not to the present ones.",
            action="Nothing was done. See `mirror gaps list`, then trigger a new run.",
        )


def conf_problems(conf: Mapping[str, Any], form: ParamsDict, values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the problems of a conf.

    Args:
        form: of the DAG.
        values: as Airflow passes them to the task.
    """
    for key, value in conf.items():
        if key not in form:
            guess = difflib.get_close_matches(key, form, 1, 0.5)
            yield f"the key {key!r} is unknown" + (f", did you mean {guess[0]}?" if guess else "")
            continue
        wrong = list(value_problems(key, value, form.get_param(key).schema))
        if wrong:
            yield from wrong
        elif values.get(key) != value:
            yield (
                f"Airflow does not pass the value of {key!r} on to tasks "
                "(set core.dag_run_conf_overrides_params to True)"
            )
