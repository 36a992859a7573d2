"""A cluster's folder and identity, before anything runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mirror_lib.config.loader import check
from mirror_lib.dev import stack
from mirror_lib.dev.broker import KafkaCluster
from mirror_lib.dev.processes import ProcessError


def test_a_new_cluster_has_different_ports_for_each_broker_and_listener(tmp_path: Path) -> None:
    listeners = {"PLAINTEXT": "PLAINTEXT", "LOGIN": "SASL_PLAINTEXT"}
    cluster = KafkaCluster("new", directory=tmp_path, brokers=3, listeners=listeners)

    addresses = [*cluster.bootstrap_servers.split(","), *cluster.bootstrap_servers_of("LOGIN").split(",")]
    assert len(set(addresses)) == 6
    assert all(re.fullmatch(r"127\.0\.0\.1:\d+", address) for address in addresses)
    assert cluster.node_ids == (1, 2, 3)
    # org.apache.kafka.common.Uuid: 16 bytes in URL-safe Base64 without padding.
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}", cluster.cluster_id)


def test_a_cluster_that_never_started_runs_nothing_and_may_be_stopped(tmp_path: Path) -> None:
    cluster = KafkaCluster("new", directory=tmp_path / "none")

    cluster.stop()
    cluster.kill_all()

    assert cluster.running_nodes == ()
    assert not cluster.directory.exists()


def test_given_a_folder_that_cannot_be_read_when_opened_then_the_error_names_the_file(tmp_path: Path) -> None:
    for text in ("", "[]", '{"cluster_id": "x"}', '{"cluster_id": "x", "nodes": [{"a": 1}]}'):
        (tmp_path / "cluster.json").write_text(text)
        with pytest.raises(ProcessError, match=r"cluster\.json cannot be read\. Remove it"):
            KafkaCluster("broken", directory=tmp_path)


def test_given_a_folder_of_another_shape_when_opened_then_it_is_refused(tmp_path: Path) -> None:
    node = '{"node_id": 1, "controller": 20001, "listeners": {"PLAINTEXT": 20002}}'
    (tmp_path / "cluster.json").write_text(f'{{"cluster_id": "abc", "nodes": [{node}]}}')

    assert KafkaCluster("same", directory=tmp_path).bootstrap_servers == "127.0.0.1:20002"
    with pytest.raises(ProcessError, match="another shape"):
        KafkaCluster("other", directory=tmp_path, brokers=3)


def test_given_nothing_started_when_the_stack_is_looked_at_then_neither_cluster_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIRROR_STATE_DIR", str(tmp_path))

    assert [(cluster.name, cluster.running, cluster.pid) for cluster in stack.status()] == [
        ("A", False, None),
        ("B", False, None),
    ]
    assert stack.down() == []


def test_the_file_that_the_stack_writes_is_a_configuration_without_problems(tmp_path: Path) -> None:
    file = tmp_path / "mirror.properties"
    file.write_text(stack.example_properties("127.0.0.1:20001", "127.0.0.1:20002"))

    assert check(file) == ()
