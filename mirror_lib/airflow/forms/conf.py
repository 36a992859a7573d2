"""What a run was triggered with, held against its DAG's form.

By REST and by Airflow's command line anybody can send anything. Airflow refuses values that the form forbids. Keys that
the form does not have it passes on: a misspelt `dry_run` would copy for real. And whoever clears an old run has it done
again with what it was triggered with then.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from mirror_lib.airflow.compatibility import Context, ParamsDict
from mirror_lib.airflow.forms.values import value_problems
from mirror_lib.errors import ConfigurationError
from mirror_lib.relay.job import ASK

#: A run is given up after a day; what somebody has decided about lost records is about those of that time.
_DECIDED_FOR = timedelta(days=2)


class CheckedConf:
    """Part of an operator whose task refuses a run with a conf that its form does not explain.

    It has to come before Airflow's operator among the bases.
    """

    def pre_execute(self, context: Context) -> None:
        """Airflow calls it in the task's process, right before `execute`; what it raises ends the task as if it had."""
        check_conf(context)
        super().pre_execute(context)  # type: ignore[misc]  # of Airflow's operator


def check_conf(context: Context) -> None:
    """Refuse a run whose conf its form does not explain.

    Raises:
        ConfigurationError: a key is unknown, a value cannot be used, Airflow does not hand the values over, or the run
            is an old one that decides about lost records.
    """
    run, dag = context.get("dag_run"), context.get("dag")
    conf: Mapping[str, Any] = (run.conf if run is not None else None) or {}
    if dag is None or not conf:
        return
    problems = list(conf_problems(conf, dag.params, context["params"]))
    if problems:
        fields = ", ".join(dag.params) or "none: it takes no values"
        raise ConfigurationError(
            f"this run of {dag.dag_id} was triggered with values that cannot be used: {'; '.join(problems)}.",
            action=f"Nothing was done. Trigger it again with other values. The form's fields: {fields}.",
        )
    if conf.get("gaps", ASK) != ASK:
        _refuse_old_decision(dag.dag_id, conf["gaps"], run.run_after)


def _refuse_old_decision(dag_id: str, gaps: str, triggered: datetime) -> None:
    if datetime.now(UTC) - triggered > _DECIDED_FOR:
        raise ConfigurationError(
            f"this run of {dag_id} was triggered at {triggered:%Y-%m-%d %H:%M} UTC with gaps={gaps}: that was decided "
            "about what had been lost then, and not about what is lost now.",
            action="Nothing was done. `mirror gaps list` shows what is lost; trigger a new run instead.",
        )


def conf_problems(conf: Mapping[str, Any], form: ParamsDict, values: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with a conf.

    Args:
        form: of the DAG.
        values: what Airflow gives to the task.
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
