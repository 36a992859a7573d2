"""The files of a local broker. Expected values: Kafka's broker configuration reference (KRaft, combined mode)."""

from __future__ import annotations

from pathlib import Path

from mirror_lib.dev.broker_config import (
    NodePorts,
    acl_settings,
    log_settings,
    needs_zookeeper,
    server_properties,
    zookeeper_properties,
)

ONE = [NodePorts(1, 20001, {"PLAINTEXT": 20002})]
THREE = [NodePorts(number, 20000 + number, {"PLAINTEXT": 21000 + number}) for number in (1, 2, 3)]
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


def test_three_nodes_know_each_other_and_keep_three_copies() -> None:
    found = server_properties(THREE[1], THREE, DATA)

    assert found["node.id"] == "2"
    assert found["controller.quorum.voters"] == "1@127.0.0.1:20001,2@127.0.0.1:20002,3@127.0.0.1:20003"
    assert {value for name, value in found.items() if name.endswith("replication.factor")} == {"3"}
    assert found["min.insync.replicas"] == found["transaction.state.log.min.isr"] == "2"


def test_more_listeners_get_their_protocols_and_brokers_use_the_first() -> None:
    node = NodePorts(1, 20001, {"PLAINTEXT": 20002, "LOGIN": 20003})
    found = server_properties(node, [node], DATA, listeners={"PLAINTEXT": "PLAINTEXT", "LOGIN": "SASL_PLAINTEXT"})

    assert found["advertised.listeners"] == "PLAINTEXT://127.0.0.1:20002,LOGIN://127.0.0.1:20003"
    assert found["listener.security.protocol.map"] == "PLAINTEXT:PLAINTEXT,LOGIN:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT"
    assert found["inter.broker.listener.name"] == "PLAINTEXT"


def test_overrides_count_last() -> None:
    found = server_properties(ONE[0], ONE, DATA, overrides={"num.partitions": "7", "compression.type": "zstd"})

    assert (found["num.partitions"], found["compression.type"]) == ("7", "zstd")


def test_kafka_4_logs_by_log4j_2_and_earlier_ones_by_reload4j() -> None:
    new, new_option = log_settings("4.3.1", ["org.example"])
    old, old_option = log_settings("3.9.1", ["org.example"])

    assert new_option == "-Dlog4j2.configurationFile="
    assert "rootLogger.level = WARN\n" in new
    assert "logger.l0.name = org.example\nlogger.l0.level = INFO\n" in new
    assert old_option == "-Dlog4j.configuration=file:"
    assert "log4j.rootLogger=WARN, out\n" in old
    assert "log4j.logger.org.example=INFO\n" in old
    assert all("%d{ISO8601} %-5p %c{1} %m%n" in text for text in (new, old))


def test_brokers_before_kraft_was_for_production_have_a_zookeeper() -> None:
    versions = ("2.8.2", "3.2.3", "3.3.0", "3.9.1", "4.3.1", "10.0.0")
    assert [version for version in versions if needs_zookeeper(version)] == ["2.8.2", "3.2.3"]
    assert acl_settings("2.8.2")["authorizer.class.name"] == "kafka.security.authorizer.AclAuthorizer"
    assert acl_settings("4.3.1")["authorizer.class.name"].endswith(".StandardAuthorizer")


def test_with_zookeeper_brokers_meet_there_and_no_quorum_is_named() -> None:
    found = server_properties(THREE[1], THREE, DATA, zookeeper=True)

    assert found["zookeeper.connect"] == "127.0.0.1:20001"
    assert found["broker.id"] == "2"
    assert found["listeners"] == "PLAINTEXT://127.0.0.1:21002"
    assert found["listener.security.protocol.map"] == "PLAINTEXT:PLAINTEXT"
    assert not found.keys() & {"process.roles", "node.id", "controller.quorum.voters", "controller.listener.names"}
    # It is reachable from this machine only and opens no second port.
    own = zookeeper_properties(20001, DATA)
    assert (own["clientPort"], own["clientPortAddress"]) == ("20001", "127.0.0.1")
    assert own["admin.enableServer"] == "false"
