"""Errors that name the right that is missing."""

from __future__ import annotations

from mirror_lib.cluster.protocol.error_codes import ErrorCode
from mirror_lib.cluster.protocol.kafka_errors import Needed, error_for_code
from mirror_lib.errors import AuthorizationError, TopicMissingError, Where
from mirror_lib.topology.access import Grant, Operation

WRITE = Grant.on_topic(Operation.WRITE, "A.orders")


def test_a_refusal_names_operation_resource_and_cluster_and_how_to_grant_it() -> None:
    elsewhere, transactions = (
        Where(flow="A->B", topic="orders"),
        Grant.on_transactional_id(Operation.WRITE, "m:A->B:x-0"),
    )
    for code, where, needs, what, actions in (
        (
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            Where(cluster="B", topic="A.orders"),
            WRITE,
            "needs WRITE on topic A.orders of cluster B",
            ("--operation Write --topic A.orders", "mirror acls required"),
        ),
        # The place is the other side's.
        (
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            elsewhere,
            Needed(WRITE, "B"),
            "needs WRITE on topic A.orders of cluster B",
            (),
        ),
        # A right on the cluster itself names it once.
        (
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            Where(cluster="B"),
            Grant.on_cluster(Operation.DESCRIBE),
            "needs DESCRIBE on the cluster B (",
            ("--operation Describe --cluster",),
        ),
        # Names are quoted for the shell.
        (
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            Where(cluster="B"),
            transactions,
            "needs WRITE on transactional id m:A->B:x-0",
            ("--transactional-id 'm:A->B:x-0'", "mirror.fencing=none"),
        ),
    ):
        error = error_for_code(code, where=where, doing="write", needs=needs)

        assert isinstance(error, AuthorizationError)
        assert what in error.what
        for action in actions:
            assert action in error.action
        assert error.where == where


def test_other_errors_are_not_about_rights() -> None:
    for needs in (WRITE, Needed(WRITE, "B"), None):
        error = error_for_code(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, where=Where(cluster="B"), doing="write", needs=needs
        )
        assert isinstance(error, TopicMissingError)
        assert "needs" not in error.what
