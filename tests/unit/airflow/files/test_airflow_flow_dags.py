from pathlib import Path
from types import SimpleNamespace

import pytest

from mirror_lib.airflow.files import flow_dags
from mirror_lib.config.loader import ReadablePart


@pytest.fixture
def files(make_flow, monkeypatch):
    """The flows of configuration files by name."""
    content = {"ab": [make_flow("A", "B")], "bc": [make_flow("B", "C")]}

    def load_readable(path):
        return ReadablePart(SimpleNamespace(enabled_flows=content[path.name]), None)

    monkeypatch.setattr(flow_dags, "load_readable", load_readable)
    return content


def test_the_variable_names_one_file_or_several():
    assert flow_dags.config_files({"MIRROR_CONFIG": "/a:/b"}, Path("/p")) == [Path("/a"), Path("/b")]


def test_without_the_variable_the_local_clusters_file_comes_before_the_example(tmp_path):
    assert flow_dags.config_files({}, tmp_path) == [tmp_path / "examples" / "mirror.properties"]
    local = tmp_path / ".mirror" / "mirror.properties"
    local.parent.mkdir()
    local.touch()
    assert flow_dags.config_files({}, tmp_path) == [local]


def test_every_enabled_flow_of_every_file_has_a_dag(files):
    assert set(flow_dags.build_flow_dags([Path("ab"), Path("bc")])) == {"mirror__A__B", "mirror__B__C"}


def test_a_worker_that_wants_one_dag_gets_just_that(files):
    assert set(flow_dags.build_flow_dags([Path("ab"), Path("bc")], only="mirror__B__C")) == {"mirror__B__C"}
