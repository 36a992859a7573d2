from pathlib import Path
from types import SimpleNamespace

import pytest

from mirror_lib.airflow import flow_dags
from mirror_lib.errors import ConfigurationError


@pytest.fixture
def files(make_flow, monkeypatch):
    """Configuration files by name: flows, or what is wrong with the file."""
    content = {"ab": [make_flow("A", "B")], "bc": [make_flow("B", "C")], "bad": "line 3: unknown key topcis"}

    def load(path):
        found = content[path.name]
        if isinstance(found, str):
            raise ConfigurationError(f"{path}: {found}")
        return SimpleNamespace(enabled_flows=found)

    monkeypatch.setattr(flow_dags, "load", load)
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


def test_all_problems_of_all_files_are_in_one_import_error(files):
    files["worse"] = "line 9: A.bootstrap.servers is missing"
    with pytest.raises(ConfigurationError) as caught:
        flow_dags.build_flow_dags([Path("bad"), Path("ab"), Path("worse")])
    assert "topcis" in str(caught.value)
    assert "bootstrap.servers" in str(caught.value)


def test_a_broken_file_does_not_stop_a_worker_that_needs_another(files):
    assert set(flow_dags.build_flow_dags([Path("bad"), Path("ab")], only="mirror__A__B")) == {"mirror__A__B"}


def test_two_flows_with_one_dag_id_are_refused(files, make_flow):
    files["twin"] = [make_flow("A", "B")]
    with pytest.raises(ConfigurationError, match="both make the DAG mirror__A__B"):
        flow_dags.build_flow_dags([Path("ab"), Path("twin")])
