"""Fence writers from topics by ACLs that deny writing; a rollback or failback removes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from mirror_lib.cluster.protocol.kafka_errors import SecurityDisabledError
from mirror_lib.config.model import FlowConfig
from mirror_lib.counted import counted
from mirror_lib.errors import AuthorizationError, ConfigurationError
from mirror_lib.features.cutover.gates import first_places
from mirror_lib.features.cutover.model import Gate
from mirror_lib.sync.admins import source_admin
from mirror_lib.topology.acls import WILDCARD, WRITE, AclBinding, AclPattern, AclPermission, AclResource

_ACTION = "Stop the writers manually, and start the cutover with fence=operator."


def check_writers(writers: Iterable[str]) -> None:
    """Check that the fence would deny access to a principal.

    Brokers before Kafka 4.0 accept an ACL for a name without a type, which denies nothing; later ones refuse it, when
    the writers are to be stopped (KAFKA-18051).

    Raises:
        ConfigurationError: one is not a principal.
    """
    for writer in writers:
        kind, _, name = writer.partition(":")
        if not kind or not name:
            raise ConfigurationError(
                f"the writer {writer!r} is not a principal: that is a type and a name.",
                action="Enter it as the brokers know it, for example User:app or User:CN=app,OU=ops.",
            )


def fence_acls(topics: Iterable[str], writers: Sequence[str]) -> tuple[AclBinding, ...]:
    """Return ACLs that deny some principals to write to topics. ACLs do not apply to super users."""
    return tuple(
        AclBinding(AclResource.TOPIC, topic, AclPattern.LITERAL, writer, WILDCARD, WRITE, AclPermission.DENY)
        for topic in sorted(topics)
        for writer in writers
    )


def can_fence(flow: FlowConfig) -> Gate:
    """Gate: the source has an authorizer whose ACLs this user may read; checked while the writers still write.

    Raises:
        MirrorError: the source cannot be reached.
    """
    with source_admin(flow) as source:
        try:
            source.acls([AclResource.TOPIC])
        except SecurityDisabledError:
            return Gate("fence", False, _no_authorizer(flow), _ACTION)
        except AuthorizationError as error:
            return Gate("fence", False, f"the ACLs of the fence cannot be created: {error}", _ACTION)
    return Gate("fence", True, "ACLs can deny writes to the topics.")


def _no_authorizer(flow: FlowConfig) -> str:
    return f"cluster {flow.flow.source} has no authorizer: writes cannot be denied."


def raise_fence(
    flow: FlowConfig,
    topics: Sequence[str],
    writers: Sequence[str],
    known: Sequence[Mapping[str, Any]],
    keep: Callable[[Mapping[str, Any]], None],
) -> Gate:
    """Deny writing to topics of the flow's source.

    ACLs that exist already belong to others, and stay when the fence is removed.

    Args:
        writers: principals.
        known: ACLs that an earlier attempt may have created.
        keep: stores the ACLs of this cutover before they are created.

    Raises:
        MirrorError: the source cannot be reached.
    """
    wanted, before = fence_acls(topics, writers), {AclBinding.from_dict(each) for each in known}
    with source_admin(flow) as source:
        try:
            present = source.acls([AclResource.TOPIC])
        except SecurityDisabledError:
            return Gate("fence", False, _no_authorizer(flow), _ACTION)
        lacking = [acl for acl in wanted if acl not in present]
        keep({"fence": [asdict(acl) for acl in sorted(before | set(lacking))]})
        outcome = source.create_acls(lacking) if lacking else {}
    failed = [f"{acl.name} ({error})" for acl, error in outcome.items() if error is not None]
    good = f"writes of {first_places(writers)} to {counted(len(topics), 'topic')} are denied."
    return Gate("fence", not failed, good if not failed else f"not fenced: {first_places(failed)}", _ACTION)


def lower_fence(flow: FlowConfig, facts: Sequence[Mapping[str, Any]]) -> Gate:
    """Remove what `raise_fence` created on the flow's source; missing ACLs count as removed.

    Args:
        facts: as `raise_fence` stored them.

    Raises:
        MirrorError: the source cannot be reached.
    """
    acls = {AclBinding.from_dict(each) for each in facts}
    with source_admin(flow) as source:
        outcome = source.delete_acls(acls) if acls else {}
    failed = [f"{acl.name} ({error})" for acl, error in outcome.items() if error is not None]
    what = f"{len(acls):,} ACLs of the fence are removed." if not failed else f"still fenced: {first_places(failed)}"
    return Gate("fence", not failed, what, "Remove these ACLs with kafka-acls.sh.")
