"""What events of Airflow's audit log did to the task that copies. Bodies are those of requests to Airflow 3.3's API."""

from __future__ import annotations

import json

from mirror_lib.features.page.airflow_audit import RUN_EVENTS, act_of


def test_an_event_did_this() -> None:
    for event, task, body, done in (
        ("patch_dag_run", None, {"state": "failed"}, "marked it as failed"),
        ("patch_dag_run", None, {"note": "look at this"}, None),
        ("patch_task_instance", "replicate", {"new_state": "success"}, "marked it as success"),
        ("patch_task_instance", "report", {"new_state": "success"}, None),
        ("clear_dag_run", None, {"dry_run": False, "only_failed": False}, "cleared it"),
        ("post_clear_task_instances", None, {"task_ids": ["replicate", "report"]}, "cleared it"),
        ("post_clear_task_instances", None, {"task_ids": [["replicate", 0]]}, "cleared it"),
        ("post_clear_task_instances", None, {"task_ids": ["report"]}, None),
        ("post_clear_task_instances", None, {"task_ids": None}, "cleared it"),
        ("delete_dag_run", None, {}, "deleted it"),
    ):
        assert event in RUN_EVENTS
        assert act_of(event, task, json.dumps(body), "replicate") == done, (event, task, body)


def test_a_mark_without_a_state_is_none() -> None:
    for extra in (None, "", "no JSON", "[1]", '{"state": 5}'):
        assert act_of("patch_dag_run", None, extra, "replicate") is None, extra
