"""A cluster's folder, before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_lib.config.loader import check
from mirror_lib.features.demo import stack
from mirror_lib.features.demo.background_process import ProcessError
from mirror_lib.features.demo.broker import KafkaCluster


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


def test_the_file_that_the_stack_writes_is_a_configuration_without_problems(tmp_path: Path) -> None:
    file = tmp_path / "mirror.properties"
    file.write_text(stack.example_properties("127.0.0.1:20001", "127.0.0.1:20002"))

    assert check(file) == ()
