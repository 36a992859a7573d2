"""What the page keeps of configuration files, and when it reads them again."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_lib.config.model import MirrorConfig
from mirror_lib.features.page.flows import FlowSource

_PACKAGE = "org.apache.kafka.common.config.provider"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "ledger").write_text("old-otter")
    path = tmp_path / "mirror.properties"
    path.write_text(
        f"""
        config.providers = dir, airflow
        config.providers.dir.class = {_PACKAGE}.DirectoryConfigProvider
        config.providers.airflow.class = mirror_lib.AirflowSecretProvider
        clusters = berlin, paris
        berlin.bootstrap.servers = ${{airflow:connection/kafka_berlin:host}}:9092
        paris.bootstrap.servers = paris:9092
        berlin->paris.enabled = true
        mirror.ledger.url = postgresql+psycopg://mirror:${{dir:{tmp_path}:ledger}}@host/db
        """
    )
    return path


def _config(source: FlowSource) -> MirrorConfig:
    served = source.read()
    assert served.problems == ()
    return served.flows[0].config


def test_flows_are_shown_without_what_airflow_keeps_and_a_file_is_read_again_when_something_changes(file: Path) -> None:
    source = FlowSource({"MIRROR_CONFIG": str(file)}, file.parent)

    assert [flow.name for flow in source.read().flows] == ["berlin->paris"]
    assert _config(source) is _config(source)
    assert "old-otter" in str(_config(source).ledger_url)
    # Another password of the ledger counts at once.
    (file.parent / "ledger").write_text("new-otter")
    assert "new-otter" in str(_config(source).ledger_url)


def test_a_broken_file_is_read_again_once_what_it_lacked_is_there(file: Path) -> None:
    missing = file.parent / "servers.properties"
    file.write_text(
        file.read_text()
        .replace("providers = dir", "providers = file, dir")
        .replace("paris:9092", f"${{file:{missing}:paris}}")
        + f"config.providers.file.class = {_PACKAGE}.FileConfigProvider\n"
    )
    source = FlowSource({"MIRROR_CONFIG": str(file)}, file.parent)
    assert len(source.read().problems) == 1

    missing.write_text("paris = paris:9092\n")

    assert _config(source).clusters == ("berlin", "paris")


def test_the_flows_of_a_broken_file_are_shown_with_what_is_wrong_unless_the_ledger_cannot_be_told(file: Path) -> None:
    good = file.read_text()
    file.write_text(f"{good}berlin->paris.topcis = orders\n")
    served = FlowSource({"MIRROR_CONFIG": str(file)}, file.parent).read()
    assert [(flow.name, flow.broken) for flow in served.flows] == [("berlin->paris", True)]
    assert "did you mean berlin->paris.topics" in str(served.problems[0].error)

    # They are not shown with another ledger.
    file.write_text(good.replace("postgresql+psycopg://", "somewhere "))
    served = FlowSource({"MIRROR_CONFIG": str(file)}, file.parent).read()
    assert served.flows == ()
    assert "ledger" in str(served.problems[0].error)
