"""What the source's ACLs mean on the target, and the plan that comes of it."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.config.model import AclRules, FlowConfig, Rename
from mirror_lib.config.topology import flow_topology
from mirror_lib.ledger.rows import AclKind, AclState, ReplicatedAclRow
from mirror_lib.sync.acls.plan import AclDifference, AclFacts, AclPlan, AclWinner, binding_of, plan_acls, row_of
from mirror_lib.sync.acls.rewrite import AclRewrite, Rewritten
from mirror_lib.topology.acls import AclBinding, AclPattern, AclPermission, AclResource
from tests.support.flow_configs import FLOW, flow_config

IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
NOW = datetime(2026, 1, 2, tzinfo=UTC)
PREFIXED_TOO = AclRules(patterns=(AclPattern.LITERAL, AclPattern.PREFIXED))
EVERY_RESOURCE = AclRules(resources=tuple(AclResource))
OPERATIONS = ["ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"]


def a_flow(rules: AclRules | None = None, **settings: Any) -> FlowConfig:
    return flow_config(acl_rules=rules or AclRules(), **settings)


def acl(text: str, resource: AclResource = AclResource.TOPIC) -> AclBinding:
    """`allow User:a READ orders`, with `orders*` for a prefix, `=*` for the wildcard."""
    permission, principal, operation, name = text.split()
    pattern = AclPattern.LITERAL
    if name == "=*":
        name = "*"
    elif name.endswith("*"):
        name, pattern = name[:-1], AclPattern.PREFIXED
    return AclBinding(resource, name, pattern, principal, "*", operation, AclPermission(permission))


def rewritten(flow: FlowConfig, *acls: AclBinding, topics: Iterable[str] = ()) -> Rewritten:
    return AclRewrite(flow, flow_topology(flow), topics).of(acls)


def wanted(flow: FlowConfig, *acls: AclBinding, topics: Iterable[str] = ()) -> set[AclBinding]:
    return set(rewritten(flow, *acls, topics=topics).wanted)


def test_a_grant_goes_to_the_remote_topic_with_its_principal_and_host() -> None:
    theirs = AclBinding(
        AclResource.TOPIC, "t", AclPattern.LITERAL, "User:CN=a,O=b", "10.0.0.1", "READ", AclPermission.ALLOW
    )

    (ours,) = wanted(a_flow(), theirs)

    assert ours == AclBinding(
        AclResource.TOPIC, "A.t", AclPattern.LITERAL, "User:CN=a,O=b", "10.0.0.1", "READ", AclPermission.ALLOW
    )


def test_writes_are_dropped_all_becomes_read_and_other_grants_and_denials_are_kept_whole() -> None:
    kept = {"ALL": "READ", "WRITE": None}
    for operation in OPERATIONS:
        granted = kept.get(operation, operation)
        expected = set() if granted is None else {acl(f"allow User:a {granted} A.t")}
        assert wanted(a_flow(), acl(f"allow User:a {operation} t")) == expected
        assert wanted(a_flow(), acl(f"deny User:a {operation} t")) == {acl(f"deny User:a {operation} A.t")}


def test_only_topics_that_the_flow_replicates() -> None:
    flow = a_flow(topics=("orders.*",))
    theirs = [acl(f"allow User:a READ {name}") for name in ("orders", "payments", "__consumer_offsets", "B.orders")]

    assert wanted(flow, *theirs) == {acl("allow User:a READ A.orders")}


def test_the_wildcard_is_taken_for_a_name_as_in_mm2() -> None:
    remote = AclBinding(AclResource.TOPIC, "A.*", AclPattern.LITERAL, "User:a", "*", "READ", AclPermission.ALLOW)
    theirs = acl("allow User:a READ =*")

    assert wanted(a_flow(), theirs) == {remote}
    assert wanted(a_flow(replication_policy_class=IDENTITY), theirs) == {theirs}


def test_renamed_topics_take_their_acls_along() -> None:
    flow = a_flow(rename=Rename(explicit={"t": "sales"}))

    assert wanted(flow, acl("allow User:a READ t")) == {acl("allow User:a READ sales")}


def test_a_prefix_becomes_the_prefix_of_the_remote_topics_if_there_are_any() -> None:
    theirs = acl("allow User:a READ orders-*")
    # With names that stay the same, it would grant access to the target's own topics.
    same_names = a_flow(PREFIXED_TOO, topics=("orders.*",), replication_policy_class=IDENTITY)

    assert wanted(a_flow(PREFIXED_TOO), theirs, topics=["orders-1"]) == {acl("allow User:a READ A.orders-*")}
    assert wanted(same_names, acl("allow User:a READ pay*"), topics=["payments", "orders"]) == set()


def test_topics_of_a_prefix_that_are_called_otherwise_get_acls_of_their_own() -> None:
    flow = a_flow(PREFIXED_TOO, rename=Rename(explicit={"orders-2": "sales"}))
    theirs = acl("deny User:a READ orders-*")

    assert wanted(flow, theirs, topics=["orders-1", "orders-2"]) == {
        acl("deny User:a READ A.orders-*"),
        acl("deny User:a READ sales"),
    }
    assert wanted(flow, theirs, topics=["orders-2"]) == {acl("deny User:a READ sales")}


def test_with_prefixes_a_grant_on_all_topics_covers_all_remote_ones_and_no_others() -> None:
    theirs = acl("allow User:a READ =*")

    assert wanted(a_flow(PREFIXED_TOO), theirs, topics=["t"]) == {acl("allow User:a READ A.*")}
    identity = a_flow(PREFIXED_TOO, replication_policy_class=IDENTITY)
    assert wanted(identity, theirs, topics=["t"]) == {theirs}


def test_groups_and_transactional_ids_keep_their_names_and_operations() -> None:
    flow = a_flow(EVERY_RESOURCE, groups_exclude=("hidden.*",))
    kept = {
        acl("allow User:a READ g", AclResource.GROUP),
        acl("allow User:a READ =*", AclResource.GROUP),
        acl("allow User:a WRITE x", AclResource.TRANSACTIONAL_ID),
        acl("allow User:a ALL x", AclResource.TRANSACTIONAL_ID),
    }

    assert wanted(flow, *kept, acl("allow User:a READ hidden-1", AclResource.GROUP)) == kept


def test_principals_are_called_by_their_new_names() -> None:
    flow = a_flow(AclRules(principals={"User:a": "User:b"}))

    made = wanted(flow, acl("allow User:a READ t"), acl("allow User:other READ t"))

    assert made == {acl("allow User:b READ A.t"), acl("allow User:other READ A.t")}


def test_grants_to_write_are_staged_when_the_flow_says_so() -> None:
    flow = a_flow(AclRules(stage_writes=True, principals={"User:b": "User:c"}))

    made = rewritten(flow, acl("allow User:a WRITE t"), acl("allow User:b ALL t"), acl("deny User:a WRITE t"))

    assert made.staged == {acl("allow User:a WRITE A.t"), acl("allow User:c ALL A.t")}
    assert made.wanted == {acl("allow User:c READ A.t"), acl("deny User:a WRITE A.t")}


def remember(binding: AclBinding, kind: AclKind, state: AclState, *, withdrawn: bool = False) -> ReplicatedAclRow:
    return row_of(FLOW, binding, kind, state, now=NOW, by="test", withdrawn=withdrawn)


def plan(
    flow: FlowConfig,
    source: Iterable[AclBinding] = (),
    target: Iterable[AclBinding] = (),
    remembered: Iterable[ReplicatedAclRow] = (),
    only: tuple[str, ...] = (),
) -> AclPlan:
    facts = AclFacts(frozenset(source), frozenset(target), ("t", "u"), {binding_of(row): row for row in remembered})
    return plan_acls(flow, flow_topology(flow, only), facts)


READ_T, READ_REMOTE = acl("allow User:a READ t"), acl("allow User:a READ A.t")
WRITE_T, WRITE_REMOTE = acl("allow User:a WRITE t"), acl("allow User:a WRITE A.t")
CREATED = remember(READ_REMOTE, AclKind.COPIED, AclState.CREATED)


def differences(made: AclPlan) -> list[tuple[AclBinding, AclDifference, AclWinner]]:
    return [(row.acl, row.difference, row.winner) for row in made.drift]


def test_what_the_target_lacks_is_created_again_and_what_the_source_has_no_more_is_reported() -> None:
    for source, remembered, created, difference, winner in (
        ([READ_T], [], (READ_REMOTE,), AclDifference.MISSING, AclWinner.SOURCE),
        # Somebody deleted it on the target.
        ([READ_T], [CREATED], (READ_REMOTE,), AclDifference.DELETED, AclWinner.SOURCE),
        ([], [CREATED], (), AclDifference.WITHDRAWN, AclWinner.TARGET),
    ):
        made = plan(a_flow(), source, [] if source else [READ_REMOTE], remembered)
        assert (made.create, made.delete) == (created, ())
        assert differences(made) == [(READ_REMOTE, difference, winner)]

    assert plan(a_flow(), [READ_T], [READ_REMOTE]) == AclPlan(FLOW, unchanged=1)


def test_it_is_deleted_where_the_flow_says_so_and_only_if_we_created_it() -> None:
    flow = a_flow(AclRules(delete=True))
    foreign = acl("allow User:x READ A.t")

    made = plan(flow, [], [READ_REMOTE, foreign], [CREATED])

    assert made.delete == (READ_REMOTE,)
    assert differences(made) == [
        (READ_REMOTE, AclDifference.WITHDRAWN, AclWinner.SOURCE),
        (foreign, AclDifference.FOREIGN, AclWinner.TARGET),
    ]


def test_a_run_for_some_topics_deletes_and_forgets_nothing_of_the_others() -> None:
    flow = a_flow(AclRules(delete=True, stage_writes=True))
    staged = remember(WRITE_REMOTE, AclKind.STAGED, AclState.WAITING)

    made = plan(flow, [READ_T, WRITE_T], [READ_REMOTE], [CREATED, staged], only=("u",))

    assert (made.create, made.delete, made.withdraw, made.forget) == ((), (), (), ())


def test_what_is_gone_on_both_sides_is_forgotten_and_the_targets_own_acls_are_nobodys_business() -> None:
    assert plan(a_flow(), [], [], [CREATED]).forget == (READ_REMOTE,)
    assert plan(a_flow(), [], [acl("allow User:x READ own"), acl("allow User:x READ A.*")]).drift == ()


def test_grants_to_write_are_kept_once() -> None:
    flow = a_flow(AclRules(stage_writes=True))
    row = remember(WRITE_REMOTE, AclKind.STAGED, AclState.WAITING)

    first, again = plan(flow, [WRITE_T]), plan(flow, [WRITE_T], [], [row])

    assert (first.create, first.stage, first.waiting) == ((), (WRITE_REMOTE,), (WRITE_REMOTE,))
    assert (again.stage, again.waiting, again.released) == ((), (WRITE_REMOTE,), ())


def test_a_released_grant_is_neither_drift_nor_staged_again() -> None:
    flow = a_flow(AclRules(stage_writes=True, delete=True))
    row = remember(WRITE_REMOTE, AclKind.STAGED, AclState.CREATED)

    for source in ([WRITE_T], []):
        made = plan(flow, source, [WRITE_REMOTE], [row])

        assert (made.stage, made.delete, made.drift) == ((), (), ())
        assert (made.waiting, made.released) == ((), (WRITE_REMOTE,))


def test_a_grant_that_the_source_withdrew_is_marked_and_marked_back() -> None:
    flow = a_flow(AclRules(stage_writes=True))
    row = remember(WRITE_REMOTE, AclKind.STAGED, AclState.WAITING)
    marked = remember(WRITE_REMOTE, AclKind.STAGED, AclState.WAITING, withdrawn=True)

    assert plan(flow, [], [], [row]).withdraw == (WRITE_REMOTE,)
    assert plan(flow, [], [], [marked]).withdraw == ()
    assert plan(flow, [WRITE_T], [], [marked]).stage == (WRITE_REMOTE,)


def test_rows_and_acls_are_the_same_thing() -> None:
    for binding in (READ_T, acl("deny User:x ALL g*", AclResource.GROUP)):
        assert binding_of(remember(binding, AclKind.COPIED, AclState.CREATED)) == binding


ACLS = st.builds(
    AclBinding,
    st.sampled_from(AclResource),
    st.sampled_from(["t", "u", "other", "*", "B.t"]),
    st.sampled_from(AclPattern),
    st.sampled_from(["User:a", "User:b", "User:*"]),
    st.sampled_from(["*", "10.0.0.1"]),
    st.sampled_from(OPERATIONS),
    st.sampled_from(AclPermission),
)


@given(
    st.frozensets(ACLS, max_size=12),
    st.lists(st.sampled_from(AclResource), min_size=1, unique=True),
    st.sampled_from([(AclPattern.LITERAL,), tuple(AclPattern)]),
    st.booleans(),
    st.sampled_from([IDENTITY, "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"]),
)
def test_nobody_but_the_replicator_may_write_before_the_release(
    source: frozenset[AclBinding],
    resources: list[AclResource],
    patterns: tuple[AclPattern, ...],
    stage: bool,
    policy: str,
) -> None:
    rules = AclRules(resources=tuple(resources), patterns=patterns, stage_writes=stage)
    flow = a_flow(rules, replication_policy_class=policy)

    made = rewritten(flow, *source, topics=["t", "u", "B.t"])

    assert not any(each.grants_writes for each in made.wanted)
    assert all(each.grants_writes for each in made.staged)
    assert stage or not made.staged
    assert {each.resource for each in made.wanted} <= set(resources)


def with_denials(
    flow: FlowConfig, *texts: str, target: Iterable[str] = (), topics: tuple[str, ...] = ("orders",)
) -> AclPlan:
    facts = AclFacts(source=frozenset(map(acl, texts)), target=frozenset(map(acl, target)), source_topics=topics)
    return plan_acls(flow, flow_topology(flow), facts)


def test_a_denial_that_the_flows_patterns_leave_out_is_told() -> None:
    """Without it somebody may read on the target what the source forbids him."""
    for text in ("deny User:a READ ord*", "deny User:a READ =*", "deny User:a ALL ord*"):
        made = with_denials(a_flow(), text, "allow User:a READ orders")
        whole = with_denials(a_flow(PREFIXED_TOO), text, "allow User:a READ orders")

        assert made.skipped_denials == (acl(text),)
        assert made.to_dict()["skipped_denials"] != []
        assert whole.skipped_denials == ()
        assert any(each.permission is AclPermission.DENY for each in whole.create), text


def test_denials_about_other_topics_and_those_that_the_target_has_are_not_told() -> None:
    pay, other = "deny User:a READ pay*", "deny User:a READ other"
    # One that covers all remote topics of its own.
    there = ("deny User:a READ A.ord*", "deny User:a READ =*")

    assert with_denials(a_flow(topics=("orders",)), pay, other, topics=("orders", "payments")).skipped_denials == ()
    assert with_denials(a_flow(), "deny User:a READ ord*", target=there).skipped_denials == ()
