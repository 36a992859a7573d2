from mirror_lib.airflow.compatibility import RetryDecision
from mirror_lib.airflow.retries import ErrorClassRetryPolicy
from mirror_lib.airflow.spark.outcome import ReplicationRunError, exit_code_in, failure_of, xcom_value
from mirror_lib.copy.job.report import Failure, JobReport, PlannedTopic
from mirror_lib.errors import (
    AuthenticationError,
    BrokerUnreachableError,
    ConfigurationError,
    ReplicationError,
    TargetDivergedError,
    TransientError,
    Where,
)


def failures(count):
    return tuple(Failure("fenced", "x", where=Where(topic="a", partition=number)) for number in range(count))


def test_xcom_has_the_first_problems_with_reason_place_and_action_and_counts_all():
    many = xcom_value(JobReport(exit_code=1, failures=failures(30)))
    assert (many["failed"], len(many["problems"])) == (30, 20)

    told = (
        Failure("fenced", "Gone.", "Wait.", Where(flow="A->B", topic="a", partition=1)),
        Failure("topic-missing", "No b.", where=Where(topic="b")),
    )
    value = xcom_value(JobReport(exit_code=1, failures=told))
    assert value["problems"] == ["[fenced] a-1: Gone. Wait.", "[topic-missing] b: No b."]

    whole = xcom_value(JobReport(exit_code=2, error=Failure("configuration", "No flow.", "Name one.")))
    assert (whole["failed"], whole["problems"]) == (1, ["[configuration] No flow. Name one."])


def test_a_dry_runs_plan_is_plain_data():
    planned = PlannedTopic("t", "A.t", partitions=2, offsets=11, estimated_bytes=103)
    value = xcom_value(JobReport(exit_code=0, dry_run=True, planned=(planned,)))
    assert value["planned"] == [
        {"topic": "t", "target_topic": "A.t", "partitions": 2, "offsets": 11, "estimated_bytes": 103}
    ]


def test_the_exit_code_is_found_in_the_providers_message_and_decides_the_error():
    assert exit_code_in("Cannot execute: spark-submit. Error code is: 3.") == 3
    assert exit_code_in("Error code is: 143") == 143
    assert exit_code_in("Error code is: -9.") == -9
    assert exit_code_in("killed") is None

    kinds = {1: ReplicationRunError, 2: ConfigurationError, 3: ReplicationError, None: ReplicationRunError}
    for code, kind in kinds.items():
        error = failure_of("A->B", code, None)
        assert type(error) is kind, code
        assert "A->B" in str(error), code
        assert "None" not in str(error), code

    # Of a driver that a signal has ended.
    error = failure_of("A->B", -9, None)
    assert type(error) is ReplicationRunError
    assert "killed by signal 9 (9: by an operator, by Airflow, or by the kernel if memory is short)" in str(error)


def test_an_error_names_the_first_failures_and_counts_the_rest():
    text = str(failure_of("A->B", 3, JobReport(exit_code=3, failures=failures(5))))
    assert "5 partition(s)" in text
    assert "[fenced] a-2: x (and 2 more)" in text


def test_what_only_a_person_can_mend_fails_at_once_and_what_may_pass_is_left_to_the_tasks_retries():
    for lasting in (ConfigurationError("x"), TargetDivergedError("x"), AuthenticationError("x")):
        decision = ErrorClassRetryPolicy().evaluate(lasting, try_number=1, max_tries=3)
        assert decision.action == RetryDecision.fail().action, lasting
        assert "not retried" in decision.reason

    for passing in (BrokerUnreachableError("x"), TransientError("x"), ReplicationRunError("x"), RuntimeError("x")):
        assert ErrorClassRetryPolicy().evaluate(passing, try_number=1, max_tries=3) == RetryDecision.default(), passing
