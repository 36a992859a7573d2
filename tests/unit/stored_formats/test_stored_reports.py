"""Today's code reads the reports of every version that the product itself reads again."""

from __future__ import annotations

from pathlib import Path

from mirror_lib.airflow.flow.report import failed_steps, report_text, steps_text
from mirror_lib.copy.job.report import JobReport
from mirror_lib.features.verify.airflow.outcome import VerifyOutcome
from tests.stored_formats.folder import FACTS, SQLITE, read_json

REPORTS = (
    "run-report",
    "run-report-quarantine",
    "run-report-gap",
    "run-report-routed",
    "backfill-report",
)


def report_of(folder: Path, name: str) -> JobReport:
    return JobReport.read(folder / "reports" / f"{name}.json")


def test_reports_of_runs_have_the_records_of_their_runs(folder: Path) -> None:
    runs = {fact["id"]: fact for fact in read_json(folder / FACTS[SQLITE])["runs"]}
    for name in REPORTS:
        found = report_of(folder, name)
        # The runs of backfills are known by their flows.
        assert found.records == runs.get(found.run_id, {"records": 5})["records"], name
        assert found.rounds, name
        assert found.round_lags or not found.records, name


def test_a_report_says_what_was_skipped_by_policy(folder: Path) -> None:
    found = report_of(folder, "run-report-quarantine")
    skipped = {(each.topic, each.first_offset, each.cause, each.quarantined) for each in found.skipped_ranges}
    facts = read_json(folder / FACTS[SQLITE])["quarantine"]
    wanted = [fact for fact in facts if fact["topic"] == "parcels"]
    assert skipped == {(fact["topic"], fact["offset"], fact["reason"], True) for fact in wanted}
    assert found.skipped == len(wanted)


def test_a_report_says_which_partition_failed(folder: Path) -> None:
    found = report_of(folder, "run-report-gap")
    (failure,) = found.failures
    assert (failure.reason, failure.where.topic, failure.where.partition) == ("retention-gap", "shipments", 0)
    assert found.exit_code == 3


def test_a_report_of_a_dry_run_has_its_plan(folder: Path) -> None:
    found = report_of(folder, "job-report-plan")
    (fact,) = read_json(folder / FACTS[SQLITE])["planned"]
    assert found.dry_run
    assert [(each.topic, each.offsets) for each in found.planned] == [(fact["topic"], fact["offsets"])]


def test_a_report_of_a_job_that_failed_as_a_whole_has_every_problem(folder: Path) -> None:
    found = report_of(folder, "job-report-error")
    assert found.exit_code == 2
    assert found.error is not None
    assert found.error.reason == "invalid-configuration"
    # Two clusters without an address, and a key that does not exist.
    assert len(found.error.more["problems"]) == 3


def test_a_report_of_a_verification_has_its_verdicts(folder: Path) -> None:
    found = VerifyOutcome.read(folder / "reports" / "verify-report.json")
    assert found is not None
    facts = read_json(folder / FACTS[SQLITE])["verifications"]
    for verdict in ("equal", "different"):
        wanted = {
            (fact["topic"], fact["partition"])
            for fact in facts
            if (fact["id"], fact["verdict"]) == (found.content["verification_id"], verdict)
        }
        assert wanted
        assert wanted <= {(row["topic"], row["partition"]) for row in found.partitions(verdict)}
    assert len(list(found.differences)) == 1
    assert found.xcom_value()["different"] == 1


def test_the_report_task_tells_a_dag_run_by_its_xcoms(folder: Path) -> None:
    xcoms = {(each["task"], each["key"]): each["value"] for each in read_json(folder / "reports" / "xcom.json")}
    outcome = xcoms["replicate", "report"]
    steps = {task: value for (task, key), value in xcoms.items() if key == "step"}
    # Seven records of orders and a heartbeat
    assert outcome["records"] == 8
    assert failed_steps(steps) == []
    text = steps_text(steps)
    assert all(f"- {step}: " in text for step in ("sync_topic_configs", "translate_offsets", "heartbeats"))
    assert "east->west" in report_text("east->west", outcome, ())
