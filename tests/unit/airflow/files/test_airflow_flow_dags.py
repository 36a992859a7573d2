from pathlib import Path

from mirror_lib.airflow.files.flow_dags import build_flow_dags, config_files
from tests.support.flow_files import write_flow


def test_the_variable_names_one_file_or_several():
    assert config_files({"MIRROR_CONFIG": "/a:/b"}, Path("/p")) == [Path("/a"), Path("/b")]


def test_without_the_variable_the_local_clusters_file_comes_before_the_example(tmp_path):
    assert config_files({}, tmp_path) == [tmp_path / "examples" / "mirror.properties"]
    local = tmp_path / ".mirror" / "mirror.properties"
    local.parent.mkdir()
    local.touch()
    assert config_files({}, tmp_path) == [local]


def test_every_enabled_flow_of_every_file_has_a_dag_and_a_worker_gets_the_one_that_it_wants(tmp_path):
    paths = [
        write_flow(tmp_path, name="ab.properties"),
        write_flow(tmp_path, source="B", target="C", name="bc.properties"),
    ]

    assert set(build_flow_dags(paths)) == {"mirror__A__B", "mirror__B__C"}
    assert set(build_flow_dags(paths, only="mirror__B__C")) == {"mirror__B__C"}
