"""Errors that name the right that is missing."""

from __future__ import annotations

import pytest

from mirror_lib.cluster.protocol.error_codes import ErrorCode
from mirror_lib.cluster.protocol.kafka_errors import Needed, error_for_code
from mirror_lib.errors import AuthorizationError, TopicMissingError, Where
from mirror_lib.topology.access import Grant, Operation

WRITE = Grant.on_topic(Operation.WRITE, "A.orders")


def test_a_refusal_names_operation_resource_and_cluster_and_how_to_grant_it() -> None:
    error = error_for_code(
        ErrorCode.TOPIC_AUTHORIZATION_FAILED, where=Where(cluster="B", topic="A.orders"), doing="write", needs=WRITE
    )

    assert isinstance(error, AuthorizationError)
    assert "needs WRITE on topic A.orders of cluster B" in error.what
    assert "--operation Write --topic A.orders" in error.action
    assert "mirror acls required" in error.action


def test_the_cluster_that_refused_is_named_where_the_place_is_the_other_sides() -> None:
    error = error_for_code(
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        where=Where(flow="A->B", topic="orders"),
        doing="append",
        needs=Needed(WRITE, "B"),
    )

    assert "needs WRITE on topic A.orders of cluster B" in error.what
    assert error.where == Where(flow="A->B", topic="orders")


def test_rights_on_the_cluster_itself_name_it_once() -> None:
    error = error_for_code(
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        where=Where(cluster="B"),
        doing="list the ACLs",
        needs=Grant.on_cluster(Operation.DESCRIBE),
    )

    assert "needs DESCRIBE on the cluster B (" in error.what
    assert "--operation Describe --cluster" in error.action


def test_names_are_quoted_for_the_shell() -> None:
    needs = Grant.on_transactional_id(Operation.WRITE, "mirror:A->B:x-0")
    code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED

    error = error_for_code(code, where=Where(cluster="B"), doing="fence", needs=needs)

    assert "--transactional-id 'mirror:A->B:x-0'" in error.action
    assert "mirror.fencing=none" in error.action


@pytest.mark.parametrize("needs", [WRITE, Needed(WRITE, "B"), None])
def test_other_errors_are_not_about_rights(needs: Grant | Needed | None) -> None:
    error = error_for_code(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, where=Where(cluster="B"), doing="write", needs=needs)

    assert isinstance(error, TopicMissingError)
    assert "needs" not in error.what
