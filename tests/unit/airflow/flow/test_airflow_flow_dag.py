import json
from datetime import timedelta
from itertools import pairwise

import pytest
from markdown_it import MarkdownIt

from mirror_lib.airflow.flow import report_task
from mirror_lib.airflow.flow.dag import build_flow_dag
from mirror_lib.airflow.flow.documentation import documentation
from mirror_lib.airflow.schedule import airflow_schedule
from mirror_lib.config.copy_settings import CopySettings
from mirror_lib.past_runs.airflow_runs import dag_id_of
from mirror_lib.topology.names import FlowId


@pytest.fixture
def dag(make_flow):
    return build_flow_dag(
        make_flow(topics=("orders", "pay.*|cash"), schedule="5m", tasks_max=4), "/etc/mirror.properties"
    )


def test_a_dag_id_is_stable_and_holds_only_what_airflow_allows():
    assert dag_id_of(FlowId("A", "B")) == "mirror__A__B"
    assert dag_id_of(FlowId("us west", "eu/1")) == "mirror__us_west__eu_1"


def test_a_flow_runs_by_its_schedule_never_twice_at_a_time_nor_makes_up_for_the_past(dag, make_flow):
    assert dag.max_active_runs == 1
    assert dag.catchup is False
    assert dag.schedule == timedelta(minutes=5)
    assert build_flow_dag(make_flow(), "f").schedule is None


def test_intervals_become_timedeltas_and_all_else_is_airflows_own():
    assert airflow_schedule("30s") == timedelta(seconds=30)
    assert airflow_schedule("5m") == timedelta(minutes=5)
    assert airflow_schedule("2h") == timedelta(hours=2)
    assert airflow_schedule("1d") == timedelta(days=1)
    for own in (None, "@hourly", "*/5 * * * *"):
        assert airflow_schedule(own) == own


def test_a_run_may_take_twelve_hours_more_than_its_copy_and_one_without_a_limit_is_never_ended(make_flow):
    for settings, longest in (
        ({}, timedelta(hours=24)),
        ({"run_longest_seconds": 7200}, timedelta(hours=14)),
        ({"run_longest_seconds": 7200, "run_max_seconds": 4 * 3600}, timedelta(hours=16)),
        ({"run_longest_seconds": 0}, None),
    ):
        flow = make_flow(copy_settings=CopySettings(**settings))
        assert build_flow_dag(flow, "f").dagrun_timeout == longest, settings


def test_tasks_are_those_of_the_design_in_their_order(dag):
    upstream = {task.task_id: task.upstream_task_ids for task in dag.tasks}

    assert upstream == {
        "preflight": set(),
        "emit_heartbeats": {"preflight"},
        "sync_topics": {"preflight", "emit_heartbeats"},
        "replicate": {"sync_topics"},
        "sync_topic_configs": {"sync_topics"},
        "sync_topic_acls": {"sync_topics"},
        "heartbeats": {"replicate"},
        "translate_offsets": {"replicate"},
        "announce_new_records": {"replicate"},
        "sync_group_offsets": {"replicate", "translate_offsets"},
        "observe": {"replicate", "heartbeats", "sync_group_offsets"},
        "report": {"replicate", "heartbeats", "sync_group_offsets", "sync_topic_configs", "sync_topic_acls", "observe"},
    }


def test_groups_are_translated_the_flow_is_observed_and_the_report_is_written_however_the_copy_ended(dag):
    for task in ("translate_offsets", "sync_group_offsets", "observe", "report"):
        assert dag.get_task(task).trigger_rule == "all_done", task
    # Airflow judges a run by its last tasks: the report alone comes after the observation, which fails no run.
    assert dag.get_task("observe").retries == 0
    assert "observe" not in report_task.REPORTED_STEPS
    # Tasks that may pass are retried.
    assert dag.get_task("replicate").retries == 3
    # The copy does not wait for heartbeats that are skipped.
    assert dag.get_task("sync_topics").trigger_rule == "none_failed"


def test_the_report_tells_of_every_task_beside_the_copy(dag):
    other = {"preflight", "emit_heartbeats", "sync_topics", "replicate", "report", "announce_new_records", "observe"}

    assert set(report_task.REPORTED_STEPS) == set(dag.task_ids) - other


def test_the_page_shows_the_flow_its_settings_and_the_form_and_no_secret(dag, make_flow):
    page = dag.doc_md
    assert "topic A.orders" in page
    assert "a1.example:9092 and 1 more" in page
    assert "`pay.*\\|cash`" in page  # a bare pipe would break the table
    for name in dag.params:
        assert f"| `{name}` | " in page
    assert "very-secret" not in page
    assert "very-secret" not in repr([{**vars(task), "dag": None} for task in dag.tasks])
    # Tags find a flow by either cluster.
    assert set(dag.tags) == {"mirror", "A", "B"}

    page = build_flow_dag(make_flow(airflow_pool="kafka", airflow_deadline_seconds=900), "f").doc_md
    assert "| `mirror.airflow.pool` | `kafka` |" in page
    assert "| `mirror.offsets` | `own` |" in page
    assert "| `mirror.airflow.deadline.seconds` | 900 |" in page


def test_no_text_of_the_file_leaves_its_place_in_the_documentation(make_flow):
    """Patterns, aliases and addresses with line breaks, fences and links."""
    for text in ("a\n```\n# all is lost\n![x](http://evil.example)", "~~~\r\n<b>", "www.evil.example", "` [x](//e)"):
        flow = make_flow(text, topics=(text, "b"), topics_exclude=(text,), groups=(text,), airflow_pool=text)
        flow.clients.source_admin.properties["bootstrap.servers"] = f"u:{text}@h:1"

        tokens = MarkdownIt("gfm-like").parse(documentation(flow, text, {}))

        kinds = {child.type for token in tokens for child in token.children or ()}
        assert kinds <= {"text", "code_inline", "strong_open", "strong_close", "softbreak"}, text
        headings = [after.content for before, after in pairwise(tokens) if before.type == "heading_open"]
        assert headings == ["Settings", "Triggering manually", "Failures"], text
        picture, example = (token.content for token in tokens if token.type == "fence")
        assert json.loads(example)["topics"] == [text]
        assert "[hidden]@h:1" in picture


def test_every_field_has_a_title_a_section_and_a_description(dag):
    for name in dag.params:
        schema = dag.params.get_param(name).schema
        assert schema["title"]
        assert schema["section"]
        assert dag.params.get_param(name).description or schema.get("description_md")
    # That of topics names the flow's own selection.
    assert "- **orders**\n- **pay\\.\\*\\|cash**" in dag.params.get_param("topics").schema["description_md"]
