"""The files of a local broker. Expected values: Kafka's broker configuration reference (KRaft, combined mode)."""

from __future__ import annotations

from pathlib import Path

from mirror_lib.features.demo.broker_config import NodePorts, server_properties, zookeeper_properties

ONE = [NodePorts(1, 20001, {"PLAINTEXT": 20002})]
DATA = Path("/state/data")


def test_a_single_node_is_broker_and_controller_on_the_loopback_address_only_and_keeps_one_copy() -> None:
    found = server_properties(ONE[0], ONE, DATA)

    assert found["process.roles"] == "broker,controller"
    assert found["listeners"] == "PLAINTEXT://127.0.0.1:20002,CONTROLLER://127.0.0.1:20001"
    assert found["advertised.listeners"] == "PLAINTEXT://127.0.0.1:20002"
    assert found["controller.quorum.voters"] == "1@127.0.0.1:20001"
    assert found["log.dirs"] == "/state/data"
    assert {value for name, value in found.items() if name.endswith("replication.factor")} == {"1"}
    assert found["min.insync.replicas"] == found["transaction.state.log.min.isr"] == "1"
    # Topics do not appear by themselves.
    assert found["auto.create.topics.enable"] == "false"


def test_with_zookeeper_brokers_meet_there_and_no_quorum_is_named() -> None:
    nodes = [NodePorts(number, 20000 + number, {"PLAINTEXT": 21000 + number}) for number in (1, 2, 3)]
    found = server_properties(nodes[1], nodes, DATA, zookeeper=True)

    assert found["zookeeper.connect"] == "127.0.0.1:20001"
    assert found["broker.id"] == "2"
    assert found["listeners"] == "PLAINTEXT://127.0.0.1:21002"
    assert found["listener.security.protocol.map"] == "PLAINTEXT:PLAINTEXT"
    assert not found.keys() & {"process.roles", "node.id", "controller.quorum.voters", "controller.listener.names"}
    # It is reachable from this machine only and opens no second port.
    own = zookeeper_properties(20001, DATA)
    assert (own["clientPort"], own["clientPortAddress"]) == ("20001", "127.0.0.1")
    assert own["admin.enableServer"] == "false"
