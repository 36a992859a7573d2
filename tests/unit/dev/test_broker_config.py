"""The files of a local broker. Expected values: Kafka's broker configuration reference (KRaft, combined mode)."""

from __future__ import annotations

from pathlib import Path

import pytest

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


def test_a_single_node_is_broker_and_controller_on_the_loopback_address_only() -> None:
    found = server_properties(ONE[0], ONE, DATA)

    assert found["process.roles"] == "broker,controller"
    assert found["listeners"] == "PLAINTEXT://127.0.0.1:20002,CONTROLLER://127.0.0.1:20001"
    assert found["advertised.listeners"] == "PLAINTEXT://127.0.0.1:20002"
    assert found["controller.quorum.voters"] == "1@127.0.0.1:20001"
    assert found["log.dirs"] == "/state/data"


def test_a_single_node_keeps_one_copy_of_internal_topics() -> None:
    found = server_properties(ONE[0], ONE, DATA)

    assert {value for name, value in found.items() if name.endswith("replication.factor")} == {"1"}
    assert found["min.insync.replicas"] == found["transaction.state.log.min.isr"] == "1"


def test_three_nodes_know_each_other_and_keep_three_copies() -> None:
    found = server_properties(THREE[1], THREE, DATA)

    assert found["node.id"] == "2"
    assert found["controller.quorum.voters"] == "1@127.0.0.1:20001,2@127.0.0.1:20002,3@127.0.0.1:20003"
    assert {value for name, value in found.items() if name.endswith("replication.factor")} == {"3"}
    assert found["min.insync.replicas"] == found["transaction.state.log.min.isr"] == "2"


def test_topics_do_not_appear_by_themselves() -> None:
    assert server_properties(ONE[0], ONE, DATA)["auto.create.topics.enable"] == "false"


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


@pytest.mark.parametrize(
    ("version", "expected"),
    [("2.8.2", True), ("3.2.3", True), ("3.3.0", False), ("3.9.1", False), ("4.3.1", False), ("10.0.0", False)],
)
def test_brokers_before_kraft_was_for_production_have_a_zookeeper(version: str, expected: bool) -> None:
    assert needs_zookeeper(version) is expected


def test_with_zookeeper_brokers_meet_there_and_no_quorum_is_named() -> None:
    found = server_properties(THREE[1], THREE, DATA, zookeeper=True)

    assert found["zookeeper.connect"] == "127.0.0.1:20001"
    assert found["broker.id"] == "2"
    assert found["listeners"] == "PLAINTEXT://127.0.0.1:21002"
    assert found["listener.security.protocol.map"] == "PLAINTEXT:PLAINTEXT"
    assert not found.keys() & {"process.roles", "node.id", "controller.quorum.voters", "controller.listener.names"}


def test_zookeeper_is_reachable_from_this_machine_only_and_opens_no_second_port() -> None:
    found = zookeeper_properties(20001, DATA)

    assert (found["clientPort"], found["clientPortAddress"]) == ("20001", "127.0.0.1")
    assert found["admin.enableServer"] == "false"


def test_the_authorizer_is_that_of_the_kind_of_cluster() -> None:
    assert acl_settings("2.8.2")["authorizer.class.name"] == "kafka.security.authorizer.AclAuthorizer"
    assert acl_settings("4.3.1")["authorizer.class.name"].endswith(".StandardAuthorizer")
