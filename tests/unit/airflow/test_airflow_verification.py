"""The DAG that compares a flow's target with its source: its form, its arguments, and what becomes of results."""

from datetime import timedelta
from pathlib import Path

import pytest

from mirror_lib.airflow.retries import is_hopeless
from mirror_lib.errors import ConfigurationError
from mirror_lib.features.verify.airflow.dag import build_verify_dag
from mirror_lib.features.verify.airflow.operator import RESULT_KEY, VerifyOperator
from mirror_lib.features.verify.airflow.outcome import (
    NotVerifiableError,
    NotVerifiedError,
    PartitionsDifferError,
    VerifyOutcome,
)
from mirror_lib.features.verify.job_arguments import VerifyArguments
from mirror_lib.features.verify.model import VerifyMode

NO_CHOICE = {"topics": None, "mode": "recent", "max_bytes": None, "max_seconds": None, "seed": 0}


def partition(number, verdict="equal", **more):
    row = {"topic": "orders", "partition": number, "verdict": verdict, "reason": None, "detail": None}
    return {**row, "differences": [], **more}


def missing(offset):
    return {
        "kind": "missing",
        "source_offset": offset,
        "target_offset": None,
        "what": [],
        "source_digest": "0123456789abcdef",
        "target_digest": None,
        "records": 1,
    }


def result(exit_code=0, *partitions, **more):
    verdicts = [row["verdict"] for row in partitions]
    return {
        "verification_id": "v-1",
        "mode": "recent",
        "exit_code": exit_code,
        "result": "the result.",
        "seconds": 1.5,
        "records": 700,
        "source_bytes": 9_000,
        "difference_count": sum(len(row["differences"]) for row in partitions),
        **{name: verdicts.count(name) for name in ("equal", "different", "unverifiable")},
        "idle_partitions": 2,
        "partitions": list(partitions),
        **more,
    }


@pytest.fixture
def verify(submit):
    """Runs the operator with a stand-in for spark-submit; returns the job's arguments and what went to XCom."""

    def run(report, params=NO_CHOICE):
        operator = VerifyOperator(task_id="verify", flow="A->B", config_path="/f", conn_id="spark_default")
        submit.execute(operator, report, params=params)
        return VerifyArguments.parse(submit.arguments_of("verify")), submit.pushed.get(RESULT_KEY)

    return run


def test_it_runs_by_its_own_schedule_or_by_hand_only(make_flow):
    dag = build_verify_dag(make_flow(schedule="5m", verify_schedule="6h"), "f")

    assert dag.schedule == timedelta(hours=6)
    assert dag.catchup is False
    assert dag.max_active_runs == 1
    assert build_verify_dag(make_flow(schedule="5m"), "f").schedule is None


def test_the_forms_choices_become_arguments(verify):
    without, _ = verify(result())
    choices = {"topics": ["orders", " ", "p.*"], "mode": "sample", "max_bytes": 5, "max_seconds": 2.5, "seed": 7}
    chosen, _ = verify(result(), choices)

    assert without == VerifyArguments(config=Path("/f"), flow="A->B", mode=VerifyMode.RECENT, report=without.report)
    assert (chosen.topics, chosen.mode) == (("orders", "p.*"), VerifyMode.SAMPLE)
    assert (chosen.max_bytes, chosen.max_seconds, chosen.seed) == (5, 2.5, 7)


def test_counts_reach_xcom_and_the_log(verify, caplog):
    with caplog.at_level("INFO"):
        _, found = verify(result(0, partition(0), partition(1)))

    assert (found["exit_code"], found["records"], found["equal"], found["idle_partitions"]) == (0, 700, 2, 2)
    assert (found["differences"], found["not_verified"]) == ([], [])
    assert "Verification v-1 (recent): the result." in caplog.text


def test_a_difference_fails_the_task_for_good_and_says_where(verify, submit, caplog):
    differing = partition(3, "different", differences=[missing(41)])

    with pytest.raises(PartitionsDifferError, match="orders-3: missing at source offset 41") as caught:
        verify(result(3, partition(0), differing, partition(4, "unverifiable", reason="transient", detail="x.")))

    assert is_hopeless(caught.value)
    assert submit.pushed[RESULT_KEY]["differences"] == ["orders-3: missing at source offset 41"]
    assert submit.pushed[RESULT_KEY]["not_verified"] == ["[transient] orders-4: x."]

    # Of many the first are shown.
    many = [partition(n, "different", differences=[missing(n)]) for n in range(30)]
    with caplog.at_level("INFO"), pytest.raises(PartitionsDifferError, match="and 27 more"):
        verify(result(3, *many))
    assert len(submit.pushed[RESULT_KEY]["differences"]) == 20
    assert "and 10 more" in caplog.text


def test_what_is_found_where_records_are_routed_counts_too(verify):
    differing = partition(3, "different", topic="orders-eu", differences=[missing(41)])
    away = partition(0, "unverifiable", topic="orders-us", reason="broker-unreachable", detail="a broker is away.")

    with pytest.raises(PartitionsDifferError, match="orders-eu-3: missing at source offset 41"):
        verify(result(3, partition(0), routed=[differing]))
    with pytest.raises(NotVerifiedError, match="orders-us-0: a broker is away"):
        verify(result(1, partition(0), routed=[away]))


def test_what_passes_by_itself_is_tried_again_and_nothing_else(verify):
    lasting = partition(0, "unverifiable", reason="no-map", detail="no map.")
    for reason in ("broker-unreachable", "transient", "retries-exhausted", "topic-missing"):
        passing = partition(1, "unverifiable", reason=reason, detail="a broker is away.")
        with pytest.raises(NotVerifiedError, match="a broker is away") as caught:
            verify(result(1, lasting, passing))
        assert not is_hopeless(caught.value), reason

    for reason in ("no-map", "budget", "corrupt-batch", "source-recreated"):
        with pytest.raises(NotVerifiableError, match=reason) as caught:
            verify(result(1, partition(0, "unverifiable", reason=reason, detail="see.")))
        assert is_hopeless(caught.value), reason


def test_a_job_that_failed_as_a_whole_is_judged_by_its_exit_code(verify, submit):
    for code, reason, kind in (
        (1, "broker-unreachable", NotVerifiedError),
        (2, "configuration", ConfigurationError),
        (3, "authentication", NotVerifiableError),
    ):
        error = {"reason": reason, "what": "cluster A said no.", "action": "Ask it."}

        with pytest.raises(kind, match=r"cluster A said no\. Ask it\."):
            verify({"exit_code": code, "error": error})

        assert submit.pushed[RESULT_KEY] == {"exit_code": code, "error": f"[{reason}] cluster A said no."}


def test_a_job_that_died_without_a_report_is_tried_again(verify, submit, tmp_path):
    with pytest.raises(NotVerifiedError, match="exit code 1"):
        verify({"exit_code": 1})
    assert submit.pushed == {}

    # One that died while it wrote its report has none.
    path = tmp_path / "half.json"
    path.write_text('{"exit_code": 0, "par')
    assert VerifyOutcome.read(path) is None
