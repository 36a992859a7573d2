"""The DAG for the time after a disaster: which flows have it, and what becomes of a person's answer."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from mirror_lib.features.cutover.airflow import approval as asking
from mirror_lib.features.cutover.airflow.after_disaster.dag import build_after_disaster_dags
from mirror_lib.features.cutover.airflow.after_disaster.tasks import hand_over
from mirror_lib.features.cutover.airflow.approval import NO, YES, Answer
from tests.support.flow_files import write_flow

DAG_ID = "mirror_after_disaster__A__B"
_IDENTITY = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
_BACK = ("B->A.enabled = true", "B->A.mirror.failback = true")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_flow(tmp_path, _IDENTITY, *_BACK)


def answered(config: Path, given: dict[str, Any] | None) -> None:
    """Hand over after an answer to the question, None if there is none."""
    instance = SimpleNamespace(xcom_pull=lambda task_ids: {"agreed": given}[task_ids])
    hand_over("A->B", str(config), "agreed", params={"topics": None}, patience_seconds=0.0, ti=instance)


def test_a_flow_with_a_way_back_has_the_dag_and_the_way_back_has_none(config: Path) -> None:
    assert set(build_after_disaster_dags([config])) == {DAG_ID}

    # With names of their own two flows may copy everything both ways.
    for back in (("B->A.enabled = true",), ("B->A.enabled = false", "B->A.mirror.failback = true")):
        assert build_after_disaster_dags([write_flow(config.parent, *back)]) == {}, back


def test_it_looks_then_asks_then_hands_over(config: Path) -> None:
    dag = build_after_disaster_dags([config])[DAG_ID]

    assert [task.task_id for task in dag.topological_sort()] == ["look", "agreed", "hand_over"]
    # Airflow may mark a question as failed whose answer it still passes on
    assert dag.get_task("hand_over").trigger_rule == "none_skipped"
    assert all(task.retries == 0 for task in dag.tasks)


def test_whoever_does_not_agree_is_named_and_without_a_yes_nothing_is_changed(config: Path) -> None:
    said = {"chosen_options": [NO], "responded_by_user": {"id": "7", "name": "marta"}}

    with pytest.raises(AirflowFailException, match="rejected by marta; nothing was changed"):
        answered(config, said)
    with pytest.raises(AirflowFailException, match="not approved; nothing was changed"):
        answered(config, None)


def test_given_a_question_that_airflow_would_show_with_its_old_text_then_nobody_is_asked(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a task that was cleared Airflow shows what stood there before."""
    question = build_after_disaster_dags([config])[DAG_ID].get_task("agreed")
    question.body = "46 offsets were never copied to B"
    monkeypatch.setattr(asking, "put_question", lambda asks, _id: (asks.subject, "6 offsets were never copied to B"))

    with pytest.raises(AirflowFailException, match="Airflow would show the old text"):
        question.execute({"task_instance": SimpleNamespace(id="7")})


def test_an_answer_is_somebodys() -> None:
    for user, by in (
        ({"id": "7", "name": "marta"}, "marta"),
        ({"id": "7"}, "7"),
        ("marta", "marta"),
        (None, "unknown"),
    ):
        assert Answer.of({"chosen_options": [YES], "responded_by_user": user}) == Answer(by, agrees=True)
