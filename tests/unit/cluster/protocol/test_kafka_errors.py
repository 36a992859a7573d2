"""Error codes as named errors. Codes and retriability: Kafka's `Errors` and `RetriableException`."""

from __future__ import annotations

import confluent_kafka
import pytest
from confluent_kafka import KafkaError

from mirror_lib import errors
from mirror_lib.cluster.admin.librdkafka_errors import ClientErrors
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.protocol.error_codes import ErrorCode, LocalCode
from mirror_lib.cluster.protocol.kafka_errors import (
    RequestRefusedError,
    TopicExistsError,
    code_name,
    error_for,
    error_for_code,
    is_retriable,
)
from mirror_lib.errors import Where

HERE = Where(cluster="B", topic="orders", partition=3)


def test_each_code_has_its_error() -> None:
    for code, kind in (
        (1, errors.OffsetOutOfRangeError),
        (3, errors.TopicMissingError),
        (6, errors.TransientError),
        (10, errors.RecordTooLargeError),
        (29, errors.AuthorizationError),
        (30, errors.AuthorizationError),
        (31, errors.AuthorizationError),
        (32, errors.RecordRefusedError),
        (36, TopicExistsError),
        (38, RequestRefusedError),
        (47, errors.FencedError),
        (53, errors.AuthorizationError),
        (58, errors.AuthenticationError),
        (87, errors.RecordRefusedError),
        (90, errors.FencedError),
        (-169, errors.AuthenticationError),
        (-181, errors.AuthenticationError),
        (-185, errors.BrokerUnreachableError),
        (-187, errors.BrokerUnreachableError),
        (-195, errors.BrokerUnreachableError),
        (9_999, errors.ClusterError),
    ):
        assert type(error_for_code(code, where=HERE, doing="do it")) is kind, code


def test_an_error_says_what_where_and_what_to_do() -> None:
    error = error_for_code(10, where=HERE, doing="write a batch", detail="too big.")
    assert error.what == "could not write a batch: MESSAGE_TOO_LARGE (error code 10): too big."
    assert error.where == HERE
    assert "max.message.bytes" in error.action


def test_every_known_code_becomes_an_error_with_a_name_and_a_way_on() -> None:
    for code in [known for known in (*ErrorCode, *LocalCode) if known != ErrorCode.NONE]:
        error = error_for_code(code, where=HERE, doing="do it")
        assert code_name(code) in error.what, code
        assert error.action, code


def test_given_a_target_with_short_transactions_then_its_setting_and_the_way_without_are_named() -> None:
    action = error_for_code(ErrorCode.INVALID_TRANSACTION_TIMEOUT, where=HERE, doing="do it").action

    assert "transaction.max.timeout.ms" in action
    assert "mirror.fencing=none" in action


def test_success_is_no_error() -> None:
    with pytest.raises(ValueError, match="not an error"):
        error_for_code(0, where=HERE, doing="do it")


def test_retriable_is_what_java_retries() -> None:
    for code, retriable in ((6, True), (7, True), (5, True), (29, False), (10, False), (-195, True)):
        assert is_retriable(code) is retriable, code


def test_our_codes_are_those_of_the_installed_client() -> None:
    """librdkafka carries the same table; names differ in a few underscores only."""
    native = {
        value
        for name in dir(KafkaError)
        if name.lstrip("_").isupper() and isinstance(value := getattr(KafkaError, name), int)
    }
    assert {code.value for code in LocalCode} <= native
    by_name = {
        name.replace("_", ""): value
        for name in dir(KafkaError)
        if name.isupper() and isinstance(value := getattr(KafkaError, name), int) and value > 0
    }
    shared = [code for code in ErrorCode if code.name.replace("_", "") in by_name]
    assert len(shared) > 50
    assert {code.name: code.value for code in shared} == {
        code.name: by_name[code.name.replace("_", "")] for code in shared
    }


def test_given_an_error_of_the_client_then_its_message_is_kept() -> None:
    error = error_for(KafkaError(38, "only 1 broker"), where=HERE, doing="create a topic")
    assert "only 1 broker" in error.what
    assert isinstance(error, RequestRefusedError)


class TestClientErrors:
    def noted(self, *reported: KafkaError) -> ClientErrors:
        noted = ClientErrors(Connection("B", ("b:9092",)))
        for error in reported:
            noted.note(error)
        return noted

    def test_given_a_refused_login_then_it_is_raised_once(self) -> None:
        noted = self.noted(KafkaError(KafkaError._AUTHENTICATION, "bad password"))
        with pytest.raises(errors.AuthenticationError, match=r"cluster B: .*bad password"):
            noted.raise_refusal()
        noted.raise_refusal()

    def test_given_a_certificate_that_is_not_trusted_then_that_is_a_refusal(self) -> None:
        with pytest.raises(errors.AuthenticationError, match=r"certificate verify failed.*ssl\.truststore"):
            self.noted(KafkaError(KafkaError._SSL, "certificate verify failed")).raise_refusal()

    def test_given_a_broker_that_goes_away_in_the_handshake_then_nobody_refused_us(self) -> None:
        noted = self.noted(KafkaError(KafkaError._SSL, "SSL handshake failed: Disconnected"))
        noted.raise_refusal()
        assert "Disconnected" in noted.unreachable("list topics").what

    def test_given_lost_brokers_then_the_reason_is_told_and_not_only_that_all_are_down(self) -> None:
        noted = self.noted(
            KafkaError(KafkaError._TRANSPORT, "Connection refused"),
            KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"),
        )
        error = noted.unreachable("list topics")
        assert isinstance(error, errors.BrokerUnreachableError)
        assert error.what == "could not list topics: no response from b:9092: Connection refused."

    def test_given_connections_that_are_closed_without_a_response_then_the_protocol_of_the_listener_is_suspected(
        self,
    ) -> None:
        """librdkafka reports refused and silent brokers each, but of a TLS listener only that all brokers are down."""
        error = self.noted(KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down")).unreachable("list topics")
        assert error.what == "could not list topics: b:9092 closes each connection without a response."
        assert "security.protocol=SSL" in error.action

    def test_given_a_lost_broker_then_it_is_told_once(self) -> None:
        noted = self.noted(KafkaError(KafkaError._TRANSPORT, "Disconnected"))
        assert [noted.lost_brokers(), noted.lost_brokers()] == [True, False]
        assert not self.noted(KafkaError(KafkaError._AUTHENTICATION, "bad password")).lost_brokers()


def test_the_installed_client_is_the_one_these_rules_were_checked_with() -> None:
    """Refusals are told apart by librdkafka's words; a new major release may change them."""
    assert confluent_kafka.version().split(".")[0] == "2"


def test_an_api_that_librdkafka_cannot_use_is_named_with_what_does_without(subtests: pytest.Subtests) -> None:
    for detail, named, action in (
        ("ACLs Admin API (KIP-140) not supported by broker", "CreateAcls", "acls"),
        ("DescribeConfigs (KIP-133) not supported by broker", "DescribeConfigs", ""),
        ("Topic Admin API (KIP-4) not supported by broker", "CreateTopics", "hand"),
    ):
        with subtests.test(detail=detail):
            error = error_for_code(LocalCode.UNSUPPORTED_FEATURE, where=HERE, doing="try", detail=detail)

            assert error.reason == "unsupported"
            assert f"does not support {named} (API key " in error.what
            assert action in error.action


def test_what_a_cluster_does_not_offer_needs_a_decision_because_no_retry_helps() -> None:
    for code in (ErrorCode.UNSUPPORTED_VERSION, LocalCode.UNSUPPORTED_FEATURE, ErrorCode.SECURITY_DISABLED):
        assert error_for_code(code, where=HERE, doing="try").exit_code == 3, code
    # The next run sees that the topic exists.
    assert error_for_code(ErrorCode.TOPIC_ALREADY_EXISTS, where=HERE, doing="try").exit_code == 1
