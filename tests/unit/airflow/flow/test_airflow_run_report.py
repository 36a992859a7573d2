from mirror_lib.airflow.flow.report import report_text, steps_text
from mirror_lib.observe.run_totals import TopicTotal

DONE = {"exit_code": 0, "dry_run": False, "problems": [], "failed": 0, "planned": []}


def test_a_run_that_copied_shows_a_line_for_each_topic():
    total = TopicTotal("orders", "A.orders", 4, 1_200, 34_500, 1.26, 0)
    assert report_text("A->B", DONE, [total]).splitlines() == [
        "Flow A->B copied 1,200 records:",
        "",
        "topic   target topic  partitions  records     size  seconds  failed",
        "------  ------------  ----------  -------  -------  -------  ------",
        "orders      A.orders           4    1,200  34.5 kB      1.3",
    ]


def test_a_run_with_nothing_new_and_a_job_that_never_ended_are_told_apart():
    assert report_text("A->B", DONE, []) == "Flow A->B: no new records to copy."
    assert "copied nothing" in report_text("A->B", None, [])


def test_problems_are_listed_and_those_left_out_are_counted():
    outcome = {**DONE, "exit_code": 1, "problems": ["[fenced] a-0: x"], "failed": 3}
    assert report_text("A->B", outcome, []).splitlines()[-2:] == ["- [fenced] a-0: x", "- ... and 2 more"]


def test_a_dry_run_shows_the_plan():
    planned = [{"topic": "t", "target_topic": "A.t", "partitions": 2, "offsets": 1100, "estimated_bytes": 5}]
    text = report_text("A->B", {**DONE, "dry_run": True, "planned": planned}, [])
    assert "nothing was changed" in text
    assert "1,100" in text


def test_what_was_left_out_is_told_though_the_run_succeeded():
    outcome = {**DONE, "left_out": 1_200, "left_out_ranges": ["[record-too-large] orders-0, offset 7 (skipped): x"]}
    assert report_text("A->B", outcome, []).splitlines()[-2:] == [
        "Skipped by mirror.poison.policy, 1,200 records:",
        "- [record-too-large] orders-0, offset 7 (skipped): x",
    ]


def test_records_that_groups_would_skip_or_read_again_and_denials_left_out_are_told():
    groups = {"skipped": None, "failed": 0, "problems": [], "groups": 2, "read_again": 3, "skipped_records": 60}
    acls = {"skipped": None, "failed": 0, "problems": [], "denials_left_out": 1, "notices": ["1 denials ..."]}
    assert steps_text({"sync_group_offsets": groups, "sync_topic_acls": acls}).splitlines()[1:] == [
        "- sync_group_offsets: 2 groups, 3 duplicates, 60 records skipped",
        "- sync_topic_acls: 1 DENY ACLs not copied; note: 1 denials ...",
    ]
