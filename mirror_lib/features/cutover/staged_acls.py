"""Grants to write that wait for the cutover: `release` creates them on the target, `revoke` removes them.

Both need only the target and the ledger: on a failover the source may be gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from mirror_lib.cluster.protocol.kafka_errors import SecurityDisabledError
from mirror_lib.config.model import FlowConfig
from mirror_lib.errors import ConfigurationError, MirrorError, Where
from mirror_lib.ledger.rows import AclKind, AclState, ReplicatedAclRow
from mirror_lib.ledger.store import Ledger
from mirror_lib.sync.acls.plan import binding_of
from mirror_lib.sync.admins import target_admin
from mirror_lib.topology.acls import ALL, WRITE, AclBinding, AclPermission, AclResource
from mirror_lib.topology.java_regex import compile_list

_EVERYBODY = "User:*"


@dataclass(frozen=True, slots=True)
class StagedAclChange:
    """The result of a release or a revocation."""

    flow: str
    #: Created on the target, or removed from it.
    changed: tuple[AclBinding, ...] = ()
    #: On the target already, not created by the replicator: revoking leaves them there.
    present: tuple[AclBinding, ...] = ()
    #: Not released because the source no longer grants them.
    withdrawn: tuple[AclBinding, ...] = ()
    #: Released without effect: a DENY on the target wins over every grant.
    denied: tuple[AclBinding, ...] = ()
    failed: tuple[tuple[AclBinding, MirrorError], ...] = ()
    #: Set if nothing was done because the target has no authorizer.
    notice: str | None = None

    @property
    def exit_code(self) -> int:
        """0 if nothing was rejected, else the highest exit code of the errors."""
        return max((error.exit_code for _, error in self.failed), default=0)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        parts = ("changed", "present", "withdrawn", "denied")
        return {
            "flow": self.flow,
            **{part: [asdict(acl) for acl in getattr(self, part)] for part in parts},
            "failed": [{**error.attributes(), "acl": str(acl)} for acl, error in self.failed],
            "notice": self.notice,
        }


def release_acls(
    flow: FlowConfig, ledger: Ledger, *, by: str, with_withdrawn: bool = False, topics: Sequence[str] = ()
) -> StagedAclChange:
    """Create the waiting grants to write on the target. Repeating it does what remains.

    Args:
        flow: the flow.
        ledger: stores the grants.
        by: the operator or program, for the ledger.
        with_withdrawn: include grants that the source no longer has, for example after its writers were locked out for
            the cutover.
        topics: Java regexes; only grants on target topics with matching names or prefixes; all if empty.

    Raises:
        ConfigurationError: one of `topics` is not a regex.
        MirrorError: the target or the ledger cannot be used. A target without an authorizer gives a notice.
    """
    rows = _staged_rows(flow, ledger, topics, AclState.WAITING, AclState.CREATING)
    kept = tuple(sorted(acl for acl, row in rows.items() if row.withdrawn and not with_withdrawn))
    wanted = {acl: row for acl, row in rows.items() if acl not in kept}
    if not wanted:
        return StagedAclChange(str(flow.flow), withdrawn=kept)
    with target_admin(flow) as target:
        try:
            on_target = target.acls([AclResource.TOPIC])
        except SecurityDisabledError:
            return _no_authorizer(flow)
        # A grant that the replicator may have created before a crash counts as its own.
        present = {acl for acl, row in wanted.items() if acl in on_target and row.state == AclState.WAITING}
        ours = {acl: row for acl, row in wanted.items() if acl not in present}
        # Recorded before it is created, so that it can be revoked after any failure in between.
        _save(ledger, ours.values(), AclState.CREATING, by)
        outcome = target.create_acls(ours) if ours else {}
    done = [acl for acl, error in outcome.items() if error is None]
    _save(ledger, (ours[acl] for acl in done), AclState.CREATED, by)
    _save(ledger, (ours[acl] for acl, error in outcome.items() if error is not None), AclState.WAITING, by)
    released = sorted((*done, *present))
    return StagedAclChange(
        str(flow.flow),
        changed=tuple(sorted(done)),
        present=tuple(sorted(present)),
        withdrawn=kept,
        denied=tuple(acl for acl in released if any(_denies(other, acl) for other in on_target)),
        failed=_failures(outcome),
    )


def revoke_acls(flow: FlowConfig, ledger: Ledger, *, by: str, topics: Sequence[str] = ()) -> StagedAclChange:
    """Remove the released grants to write from the target; they wait again. Grants of other owners stay.

    Args:
        flow: the flow.
        ledger: stores which grants were released.
        by: the operator or program, for the ledger.
        topics: as for `release_acls`.

    Raises:
        ConfigurationError: one of `topics` is not a regex.
        MirrorError: the target or the ledger cannot be used. A target without an authorizer gives a notice.
    """
    rows = _staged_rows(flow, ledger, topics, AclState.CREATING, AclState.CREATED)
    if not rows:
        return StagedAclChange(str(flow.flow))
    with target_admin(flow) as target:
        try:
            outcome = target.delete_acls(rows)
        except SecurityDisabledError:
            return _no_authorizer(flow)
    done = [acl for acl, error in outcome.items() if error is None]
    _save(ledger, (rows[acl] for acl in done), AclState.WAITING, by)
    return StagedAclChange(str(flow.flow), changed=tuple(sorted(done)), failed=_failures(outcome))


def _staged_rows(
    flow: FlowConfig, ledger: Ledger, topics: Sequence[str], *states: AclState
) -> dict[AclBinding, ReplicatedAclRow]:
    try:
        named = compile_list(topics)
    except ValueError as error:
        raise ConfigurationError(
            f"--topics: {error}.", where=Where(flow=str(flow.flow)), action="Correct the regular expression."
        ) from error
    rows = (row for row in ledger.acls(str(flow.flow)) if row.kind == AclKind.STAGED and row.state in states)
    found = {binding_of(row): row for row in rows}
    return {acl: row for acl, row in found.items() if named is None or named.fullmatch(acl.name)}


def _no_authorizer(flow: FlowConfig) -> StagedAclChange:
    cluster = flow.flow.target
    notice = f"Cluster {cluster} has no authorizer: all users may write there, and staged grants stay in the ledger."
    return StagedAclChange(str(flow.flow), notice=notice)


def _save(ledger: Ledger, rows: Iterable[ReplicatedAclRow], state: AclState, by: str) -> None:
    now = datetime.now(UTC)
    ledger.save_acls([replace(row, state=state.value, changed_at=now, changed_by=by) for row in rows])


def _failures(outcome: Mapping[AclBinding, MirrorError | None]) -> tuple[tuple[AclBinding, MirrorError], ...]:
    return tuple((acl, error) for acl, error in sorted(outcome.items()) if error is not None)


def _denies(other: AclBinding, grant: AclBinding) -> bool:
    return (
        other.permission is AclPermission.DENY
        and other.operation in (WRITE, ALL)
        and other.principal in (grant.principal, _EVERYBODY)
        and other.matches(grant.name)
    )
