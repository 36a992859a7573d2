import pytest

from mirror_lib.airflow.compatibility import RetryDecision
from mirror_lib.airflow.retries import ErrorClassRetryPolicy
from mirror_lib.airflow.spark.outcome import ReplicationRunError
from mirror_lib.errors import (
    AuthenticationError,
    BrokerUnreachableError,
    ConfigurationError,
    TargetDivergedError,
    TransientError,
)


@pytest.mark.parametrize("error", [ConfigurationError("x"), TargetDivergedError("x"), AuthenticationError("x")])
def test_what_only_a_person_can_mend_fails_at_once(error):
    decision = ErrorClassRetryPolicy().evaluate(error, try_number=1, max_tries=3)
    assert decision.action == RetryDecision.fail().action
    assert "not retried" in decision.reason


@pytest.mark.parametrize(
    "error", [BrokerUnreachableError("x"), TransientError("x"), ReplicationRunError("x"), RuntimeError("x")]
)
def test_what_may_pass_is_left_to_the_tasks_retries(error):
    assert ErrorClassRetryPolicy().evaluate(error, try_number=1, max_tries=3) == RetryDecision.default()


def test_the_policy_survives_the_dags_serialisation():
    policy = ErrorClassRetryPolicy()
    assert isinstance(ErrorClassRetryPolicy.deserialize(policy.serialize()), ErrorClassRetryPolicy)
