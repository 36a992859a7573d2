"""Sets of jars: what they ask for, when they are there, and what Ivy's output means."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest

from mirror_lib.dev import jars
from mirror_lib.dev.jars import Artifact, FetchProgress, IvyLog, JarsUnavailableError

FIRST = "org.apache.kafka#kafka_2.13;4.3.1"
SECOND = "org.xerial.snappy#snappy-java;1.1.10.7"


def test_a_broker_comes_with_the_logging_that_no_artifact_depends_on() -> None:
    asked = [str(artifact) for artifact in jars.kafka_broker("4.3.1").artifacts]
    assert asked[0] == "org.apache.kafka:kafka_2.13:4.3.1"
    assert asked[1].startswith("org.apache.logging.log4j:log4j-slf4j-impl:")

    for version in ("3.9.1", "2.8.2"):
        assert "org.slf4j:slf4j-reload4j:1.7.36" in map(str, jars.kafka_broker(version).artifacts), version


def test_sets_of_different_kinds_and_versions_have_folders_of_their_own() -> None:
    kinds = (jars.kafka_broker, jars.mirror_maker, jars.mirror_client)
    names = [kind(version).name for kind in kinds for version in ("4.3.1", "3.9.1")]

    assert len(set(names)) == len(names)
    assert jars.classpath(Path("/x/4.3.1")) == "/x/4.3.1/*"
    # PySpark's jars are found without importing PySpark.
    assert list(jars.pyspark_jars().glob("ivy-*.jar"))


def test_a_set_is_there_when_all_kafka_jars_that_it_names_are(tmp_path: Path) -> None:
    wanted = jars.mirror_maker("4.3.1")

    assert [artifact.module for artifact in wanted.artifacts[:2]] == ["connect-mirror", "connect-runtime"]
    assert not wanted.is_complete(tmp_path / "missing")
    (tmp_path / "connect-mirror-4.3.1.jar").touch()
    assert not wanted.is_complete(tmp_path)
    (tmp_path / "connect-runtime-4.3.1.jar").touch()
    assert wanted.is_complete(tmp_path)


def test_given_a_set_that_is_there_when_fetched_then_nothing_is_reported_and_no_java_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    folder = tmp_path / "4.3.1"
    folder.mkdir()
    (folder / "kafka_2.13-4.3.1.jar").touch()
    told: list[FetchProgress] = []

    assert jars.fetch(jars.kafka_broker("4.3.1"), into=tmp_path, report=told.append) == folder
    assert told == []


def test_the_module_description_asks_for_run_time_dependencies_and_escapes_its_values() -> None:
    root = ElementTree.fromstring(jars.ivy_module([Artifact("a&b", 'c"d', "1")]))

    dependency = root.find("dependencies/dependency")
    assert dependency is not None
    assert dependency.attrib == {"org": "a&b", "name": 'c"d', "rev": "1", "conf": "default->default"}


def test_ivys_output_becomes_progress_first_without_and_then_with_a_total() -> None:
    told: list[FetchProgress] = []
    log = IvyLog("4.3.1", told.append)

    for line in (
        "\tconfs: [default]\n",
        f"\tfound {FIRST} in public\n",
        f"\tfound {SECOND} in public\n",
        "............ (1583kB)\n",
        f"\t[SUCCESSFUL ] {FIRST}!kafka_2.13.jar (162ms)\n",
        f"\t[SUCCESSFUL ] {SECOND}!snappy-java.jar(bundle) (151ms)\n",
    ):
        log.read(line)

    assert [(now.done, now.total) for now in told] == [(1, None), (2, None), (1, 2), (2, 2)]
    assert told[0].what == FIRST
    assert told[2].what == "kafka_2.13.jar"
    assert log.problems == []


def test_ivys_complaints_are_kept_once_each() -> None:
    log = IvyLog("4.3.1", lambda _: None)

    for line in ("\t\t:: org.x#y;1: not found\n", "\t\t:: org.x#y;1: not found\n", "\t\t:: UNRESOLVED ::\n"):
        log.read(line)

    assert log.problems == ["org.x#y;1: not found"]


@pytest.mark.parametrize(
    ("version", "name", "is_refused"),
    [
        pytest.param("4.3.1", "lz4-java-1.10.2.jar", True, id="a jar whose digest is another one"),
        pytest.param("4.3.1", "nobody-knows-1.0.jar", True, id="a jar that came along"),
        pytest.param("9.9.9", "lz4-java-1.10.2.jar", True, id="a known jar of a version that nobody knows"),
        pytest.param("9.9.9", "new-1.0.jar", False, id="a version that nobody knows, as the repository has it"),
    ],
)
def test_fetched_jars_that_are_not_what_they_were_are_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, name: str, is_refused: bool
) -> None:
    wanted = replace(jars.kafka_broker(version), artifacts=(Artifact("org.apache.kafka", "kafka_2.13", version),))
    monkeypatch.setattr(jars, "_run_ivy", lambda _set, work, _report: bring(work, version, name))

    if not is_refused:
        assert (jars.fetch(wanted, into=tmp_path) / name).is_file()
        return
    with pytest.raises(JarsUnavailableError, match=name):
        jars.fetch(wanted, into=tmp_path)
    assert not (tmp_path / wanted.name).exists()


def bring(work: Path, version: str, name: str) -> None:
    """What Ivy might bring."""
    (work / "jars").mkdir()
    for each in (f"kafka_2.13-{version}.jar", name):
        (work / "jars" / each).write_bytes(b"other")
