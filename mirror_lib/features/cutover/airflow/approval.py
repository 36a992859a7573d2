"""Questions to operators on Airflow's page of required actions, and their answers."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from mirror_lib.airflow import AirflowFailException, Context, HITLOperator, put_question

_log = logging.getLogger(__name__)
#: Options of the questions.
YES, NO = "Yes", "No"
#: XCom key under which a question's task stores what it is about.
ABOUT = "about"
#: XCom key under which a task that waits for a question stores that its step is over; empty if it is not.
PASSED = "passed"
#: How long to wait for the answer to a question that failed.
PATIENCE_SECONDS = 10.0
_POLL_SECONDS = 0.5


class AskOperator(HITLOperator):  # type: ignore[misc]  # Airflow is untyped here
    """Asks an operator yes or no; deferred meanwhile, without a worker.

    Airflow stores one text for each question of a DAG run: when a task was cleared and asks again, Airflow shows the
    old text. The operator must not approve that one.
    """

    template_fields = (*HITLOperator.template_fields, "about", "answered_before")

    def __init__(self, *, about: str = "", answered_before: str = "", **kwargs: Any) -> None:
        """See `HITLOperator`.

        Args:
            about: identifies what is to be approved; stored under `ABOUT` for the task that acts on the answer.
            answered_before: not empty if nothing is to be asked.
        """
        super().__init__(options=[YES, NO], **kwargs)
        self.about = about
        self.answered_before = answered_before

    def execute(self, context: Context) -> None:
        """Ask, unless it was answered before.

        Raises:
            AirflowFailException: Airflow would show another text than this one.
        """
        if self.answered_before:
            _log.info("Nothing to ask: %s", self.answered_before)
            return
        shown = put_question(self, context["task_instance"].id)
        if shown != (self.subject, self.body):
            raise AirflowFailException(
                "this question was asked before in this run, and its content has changed since: Airflow would show "
                "the old "
                "text. Trigger this DAG again instead of clearing its tasks."
            )
        context["ti"].xcom_push(key=ABOUT, value=self.about)
        super().execute(context)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of an operator."""

    by: str
    agrees: bool

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Read the return value of the question's task."""
        user = given.get("responded_by_user") or {}
        name = str(user.get("name") or user.get("id") or "unknown") if isinstance(user, Mapping) else str(user)
        return cls(name, YES in (given.get("chosen_options") or ()))


def answer_to(task_instance: Any, asked_by: str, patience_seconds: float) -> Answer | None:
    """Return the operator's answer; None if there is none.

    The answer to a question that failed counts: if the scheduler of Airflow 3.3 lags, it mistakes the deferral for the
    end of the task and marks it as failed, but still passes the answer on.

    Args:
        asked_by: the task that asked.
        patience_seconds: how long to wait for a missing answer.
    """
    deadline = time.monotonic() + patience_seconds
    while True:
        given: Mapping[str, Any] = task_instance.xcom_pull(task_ids=asked_by) or {}
        if given:
            return Answer.of(given)
        if time.monotonic() >= deadline:
            return None
        time.sleep(_POLL_SECONDS)
