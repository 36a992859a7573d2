"""`source.cluster.alias` and an empty separator: taken with MM2's effect, refused only where a circle would follow."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mirror_lib.config.loader import load
from mirror_lib.config.model import Severity
from mirror_lib.config.topology import flow_topology
from mirror_lib.topology.flow_topology import Exclusion
from tests.support.config_files import ConfigFile

BASE = """\
clusters = primary, backup
primary.bootstrap.servers = a:9092
backup.bootstrap.servers = b:9092
primary->backup.enabled = true
"""
BACK = "backup->primary.enabled = true\n"


_FAN_IN = (
    "clusters = A, B, C\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nC.bootstrap.servers = c:1\n"
    "A->C.enabled = true\nB->C.enabled = true\n"
)


@pytest.fixture
def file(tmp_path: Path) -> ConfigFile:
    return ConfigFile(tmp_path / "mirror.properties", BASE)


def test_two_flows_must_not_store_positions_under_one_alias_in_one_topic(file: ConfigFile) -> None:
    file = replace(file, base=f"{_FAN_IN}source.cluster.alias = x\n")
    assert file.errors() == []

    (told,) = file.errors("offset.storage.topic = positions\n")
    assert told.line == 7
    assert "A->C and B->C store their positions in positions" in told.message


def test_an_alias_is_reported_with_its_line(file: ConfigFile) -> None:
    told = file.one("source.cluster.alias = prod\n")

    assert (told.severity, told.line) == (Severity.WARNING, 5)
    assert "prod.<topic>" in told.message


def test_neither_alias_nor_separator_keeps_names(file: ConfigFile) -> None:
    found = file.one("replication.policy.separator =\nsource.cluster.alias =\ntarget.cluster.alias =\n")
    topology = flow_topology(load(file.path).enabled_flows[0])

    assert found.severity is Severity.WARNING
    assert "IdentityReplicationPolicy" in (found.suggestion or "")
    assert topology.remote_topic("orders") == "orders"
    assert topology.replicates("orders")
    # The target's own heartbeats are written to the topic of this name.
    assert topology.exclusion("heartbeats") is Exclusion.INTERNAL
    assert topology.name_table({"orders": 1}).findings == ()


def test_one_of_alias_and_separator_may_be_empty(file: ConfigFile) -> None:
    found = file.one("replication.policy.separator =\n")
    assert (found.severity, found.line) == (Severity.WARNING, 5)
    assert flow_topology(load(file.path).enabled_flows[0]).remote_topic("orders") == "primaryorders"

    assert file.errors("source.cluster.alias =\n") == []
    topology = flow_topology(load(file.path).enabled_flows[0])
    assert topology.remote_topic("orders") == ".orders"
    assert topology.name_table({"orders": 1}).findings == ()


def test_both_directions_without_a_separator_are_refused_if_they_share_a_topic(file: ConfigFile) -> None:
    for aliases in ("", "source.cluster.alias =\ntarget.cluster.alias =\n"):
        (told,) = file.errors(f"replication.policy.separator =\n{aliases}{BACK}")
        assert told.line == 5, aliases
        assert "in a loop" in told.message, aliases

    assert file.errors(BACK) == []
    topics = "replication.policy.separator =\nprimary->backup.topics = one\nbackup->primary.topics = two\n"
    assert file.errors(topics + BACK) == []


def test_a_file_of_too_many_clusters_is_refused_before_its_pairs_are_made(file: ConfigFile) -> None:
    many = f"clusters = {','.join(f'C{number}' for number in range(30_000))}\nA.bootstrap.servers = a:9092\n"
    assert any("clusters has more than 500 aliases" in str(each) for each in replace(file, base=many).errors())
