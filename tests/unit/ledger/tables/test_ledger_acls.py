"""ACLs and times of steps in the ledger, on SQLite and PostgreSQL."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from mirror_lib.ledger.rows import ReplicatedAclRow
from mirror_lib.ledger.store import Ledger

NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
ROW = ReplicatedAclRow(
    flow="a->b",
    resource="topic",
    name="a.orders",
    pattern="literal",
    principal="User:CN=ä, O=b",
    host="*",
    operation="READ",
    permission="allow",
    kind="copied",
    state="created",
    changed_at=NOW,
    changed_by="cli",
)


def test_acls_come_back_by_flow_and_a_later_state_replaces_the_earlier_one(ledger: Ledger) -> None:
    other = replace(ROW, operation="WRITE", kind="staged", state="waiting", withdrawn=True)
    later = replace(ROW, state="creating", changed_by="somebody")

    ledger.save_acls([other, ROW, replace(ROW, flow="b->a")])

    assert ledger.acls("a->b") == (ROW, other)
    assert ledger.acls("c->d") == ()
    ledger.save_acls([later])
    assert ledger.acls("a->b") == (later, other)


def test_only_the_given_acls_are_forgotten(ledger: Ledger) -> None:
    other = replace(ROW, host="10.0.0.1")
    ledger.save_acls([ROW, other, replace(ROW, flow="b->a")])

    ledger.forget_acls([ROW])
    ledger.forget_acls([])

    assert ledger.acls("a->b") == (other,)
    assert len(ledger.acls("b->a")) == 1


def test_the_time_of_a_step_is_kept_for_each_flow(ledger: Ledger) -> None:
    assert ledger.last_sync("a->b", "topic ACLs") is None

    ledger.note_sync("a->b", "topic ACLs", datetime(2025, 1, 1, tzinfo=UTC))
    ledger.note_sync("a->b", "topic ACLs", NOW)

    assert ledger.last_sync("a->b", "topic ACLs") == NOW
    assert ledger.last_sync("b->a", "topic ACLs") is None
