"""Asking a person by Airflow's page of required actions, and what came of it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from mirror_lib.airflow.compatibility import AirflowFailException, Context, HITLOperator, put_question

#: Options of the questions.
YES, NO = "Yes", "No"
#: Under this key a question's task leaves what it was about.
ABOUT = "about"
#: So long the answer to a question that failed is waited for.
PATIENCE_SECONDS = 10.0
_POLL_SECONDS = 0.5


class AskOperator(HITLOperator):  # type: ignore[misc]  # Airflow is untyped here
    """Asks a person yes or no; parked meanwhile, without a worker.

    Airflow keeps one text for each question of a run: of a task that was cleared, and asks again, it shows what stood
    there before. Nobody is to agree to that.
    """

    template_fields = (*HITLOperator.template_fields, "about")

    def __init__(self, *, about: str = "", **kwargs: Any) -> None:
        """As `HITLOperator`.

        Args:
            about: stands for what somebody agrees to; left under `ABOUT` for the task that acts on the answer.
        """
        super().__init__(options=[YES, NO], **kwargs)
        self.about = about

    def execute(self, context: Context) -> None:
        """Ask.

        Raises:
            AirflowFailException: Airflow would show another text than this one.
        """
        shown = put_question(self, context["task_instance"].id)
        if shown != (self.subject, self.body):
            raise AirflowFailException(
                "this was asked before in this run, and things have changed since: Airflow would show the old text. "
                "Trigger this DAG again instead of clearing its tasks."
            )
        context["ti"].xcom_push(key=ABOUT, value=self.about)
        super().execute(context)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person has said."""

    by: str
    agrees: bool

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """From what the question's task returned."""
        user = given.get("responded_by_user") or {}
        name = str(user.get("name") or user.get("id") or "unknown") if isinstance(user, Mapping) else str(user)
        return cls(name, YES in (given.get("chosen_options") or ()))


def answer_to(task_instance: Any, asked_by: str, patience_seconds: float) -> Answer | None:
    """What somebody has answered; None where there is no answer.

    The answer to a question that failed counts: a scheduler of Airflow 3.3 that is behind takes the end of the asking
    for the end of the task, and marks it as failed while it still passes the answer on.

    Args:
        asked_by: the task that asked.
        patience_seconds: how long an answer that is not there may still come.
    """
    deadline = time.monotonic() + patience_seconds
    while True:
        given: Mapping[str, Any] = task_instance.xcom_pull(task_ids=asked_by) or {}
        if given:
            return Answer.of(given)
        if time.monotonic() >= deadline:
            return None
        time.sleep(_POLL_SECONDS)
