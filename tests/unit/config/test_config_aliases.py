"""`source.cluster.alias` and an empty separator: taken with MM2's effect, refused only where a circle would follow."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_lib.config.loader import check, load
from mirror_lib.config.model import Problem, Severity
from mirror_lib.config.topology import flow_topology, offset_syncs_topic
from mirror_lib.sync.topics.internal import checkpoints_topic
from mirror_lib.topology.flow_topology import Exclusion

BASE = """\
clusters = primary, backup
primary.bootstrap.servers = a:9092
backup.bootstrap.servers = b:9092
primary->backup.enabled = true
"""
BACK = "backup->primary.enabled = true\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mirror.properties"


def problems(file: Path, text: str) -> list[Problem]:
    file.write_text(BASE + text)
    return list(check(file))


def errors(found: list[Problem]) -> list[Problem]:
    return [problem for problem in found if problem.severity is Severity.ERROR]


def test_an_alias_of_its_own_names_all_that_mm2_names_by_it(file: Path) -> None:
    found = problems(file, "source.cluster.alias = prod\nprimary->backup.target.cluster.alias = dr\n")
    flow = load(file).enabled_flows[0]
    topology = flow_topology(flow)

    assert errors(found) == []
    assert topology.remote_topic("orders") == "prod.orders"
    assert topology.exclusion("dr.orders") is Exclusion.CYCLE
    assert topology.exclusion("backup.orders") is None
    assert topology.checkpointed_topic("dr.orders") == "orders"
    assert offset_syncs_topic(flow) == "mm2-offset-syncs.dr.internal"
    assert checkpoints_topic(flow).name == "prod.checkpoints.internal"
    # The worker is named by the pair of clusters.
    assert flow.offset_storage_topic == "mm2-offsets.primary.internal"


def test_an_alias_of_its_own_is_reported_with_its_line(file: Path) -> None:
    (told,) = problems(file, "source.cluster.alias = prod\n")

    assert (told.severity, told.line) == (Severity.WARNING, 5)
    assert "prod.orders" in told.message


def test_two_flows_must_not_store_positions_under_one_alias_in_one_topic(file: Path) -> None:
    file.write_text(
        "clusters = A, B, C\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nC.bootstrap.servers = c:1\n"
        "A->C.enabled = true\nB->C.enabled = true\nsource.cluster.alias = x\n"
    )
    assert errors(list(check(file))) == []

    file.write_text(file.read_text() + "offset.storage.topic = positions\n")
    (told,) = errors(list(check(file)))
    assert told.line == 7
    assert "A->C and B->C store their positions in positions" in told.message


def test_neither_alias_nor_separator_keeps_names(file: Path) -> None:
    found = problems(file, "replication.policy.separator =\nsource.cluster.alias =\ntarget.cluster.alias =\n")
    topology = flow_topology(load(file).enabled_flows[0])

    assert [problem.severity for problem in found] == [Severity.WARNING]
    assert "IdentityReplicationPolicy" in (found[0].suggestion or "")
    assert topology.remote_topic("orders") == "orders"
    assert topology.replicates("orders")
    # The target's own heartbeats are written to the topic of this name.
    assert topology.exclusion("heartbeats") is Exclusion.INTERNAL
    assert topology.name_table({"orders": 1}).findings == ()


def test_an_alias_without_separator_stands_before_the_name(file: Path) -> None:
    found = problems(file, "replication.policy.separator =\n")

    assert [(problem.severity, problem.line) for problem in found] == [(Severity.WARNING, 5)]
    assert flow_topology(load(file).enabled_flows[0]).remote_topic("orders") == "primaryorders"


def test_an_empty_alias_with_a_separator_is_taken(file: Path) -> None:
    found = problems(file, "source.cluster.alias =\n")
    topology = flow_topology(load(file).enabled_flows[0])

    assert errors(found) == []
    assert topology.remote_topic("orders") == ".orders"
    assert topology.name_table({"orders": 1}).findings == ()


def test_both_directions_without_a_separator_are_refused_with_a_fix(file: Path) -> None:
    for aliases in ["", "source.cluster.alias =\ntarget.cluster.alias =\n"]:
        (told,) = errors(problems(file, f"replication.policy.separator =\n{aliases}{BACK}"))

        assert told.line == 5, aliases
        assert "in a loop" in told.message, aliases

        assert errors(problems(file, BACK)) == [], aliases


def test_directions_that_share_no_topic_need_no_separator(file: Path) -> None:
    text = "replication.policy.separator =\nprimary->backup.topics = one\nbackup->primary.topics = two\n"

    assert errors(problems(file, text + BACK)) == []


def test_a_ring_of_three_without_separators_is_refused(file: Path) -> None:
    file.write_text(
        "clusters = A, B, C\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nC.bootstrap.servers = c:1\n"
        "A->B.enabled = true\nB->C.enabled = true\nC->A.enabled = true\n"
        "replication.policy.separator =\nsource.cluster.alias =\ntarget.cluster.alias =\n"
    )
    assert [problem.line for problem in errors(list(check(file)))] == [8]
