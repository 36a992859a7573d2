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


def test_what_only_a_person_can_mend_fails_at_once_and_what_may_pass_is_left_to_the_tasks_retries():
    for lasting in (ConfigurationError("x"), TargetDivergedError("x"), AuthenticationError("x")):
        decision = ErrorClassRetryPolicy().evaluate(lasting, try_number=1, max_tries=3)
        assert decision.action == RetryDecision.fail().action, lasting
        assert "not retried" in decision.reason

    for passing in (BrokerUnreachableError("x"), TransientError("x"), ReplicationRunError("x"), RuntimeError("x")):
        assert ErrorClassRetryPolicy().evaluate(passing, try_number=1, max_tries=3) == RetryDecision.default(), passing
