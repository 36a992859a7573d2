"""PySpark's Ivy really fetches, here from a repository of our own in a folder: no network is needed."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from mirror_lib.features.demo import jar_digests, jars
from mirror_lib.features.demo.jars import FetchProgress, JarsUnavailableError


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Maven repository with a broker of version 9.9.9 and one library that it depends on."""
    folder = tmp_path / "repository"
    binding = jars.kafka_broker("9.9.9").artifacts[1]
    _publish(folder, "org.example", "library", "1.0")
    _publish(folder, "org.apache.kafka", "kafka_2.13", "9.9.9", needs="library")
    _publish(folder, binding.organisation, binding.module, binding.version)
    settings = tmp_path / "ivysettings.xml"
    settings.write_text(
        '<ivysettings><settings defaultResolver="ours"/><resolvers>'
        f'<ibiblio name="ours" m2compatible="true" root="file://{folder}/"/>'
        "</resolvers></ivysettings>"
    )
    monkeypatch.setenv(jars.IVY_SETTINGS_VARIABLE, str(settings))
    digest = jar_digests.digest_of(next(folder.rglob(f"{binding.module}-{binding.version}.jar")))
    known = tmp_path / "known.sha256"
    known.write_text(f"{digest}  {binding.module}-{binding.version}.jar\n")
    monkeypatch.setattr(jar_digests, "KNOWN_JARS", known)
    return folder


def test_given_a_repository_when_fetched_then_the_set_is_there_with_what_it_needs_and_no_draft_stays(
    repository: Path, tmp_path: Path
) -> None:
    told: list[FetchProgress] = []

    folder = jars.fetch(jars.kafka_broker("9.9.9"), into=tmp_path / "jars", report=told.append)

    names = {file.name for file in folder.iterdir()}
    assert names == {"kafka_2.13-9.9.9.jar", "library-1.0.jar", "log4j-slf4j-impl-2.25.4.jar"}
    assert {file.name for file in (tmp_path / "jars").iterdir()} == {"9.9.9", ".9.9.9.lock"}
    assert (told[-1].done, told[-1].total) == (3, 3)


def test_given_a_jar_that_was_exchanged_when_fetched_then_it_is_refused_by_name_and_nothing_stays(
    repository: Path, tmp_path: Path
) -> None:
    binding = next(repository.rglob("log4j-slf4j-impl-*.jar"))
    binding.write_bytes(binding.read_bytes() + b"one more line")

    with pytest.raises(JarsUnavailableError, match=rf"{binding.name} is not the file that it was"):
        jars.fetch(jars.kafka_broker("9.9.9"), into=tmp_path / "jars")

    assert [file.name for file in (tmp_path / "jars").iterdir()] == [".9.9.9.lock"]


def test_given_two_that_ask_at_once_when_fetched_then_both_get_the_same_and_one_fetches(
    repository: Path, tmp_path: Path
) -> None:
    told: list[FetchProgress] = []
    found: list[Path] = []

    def ask() -> None:
        found.append(jars.fetch(jars.kafka_broker("9.9.9"), into=tmp_path / "jars", report=told.append))

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert found == [tmp_path / "jars" / "9.9.9"] * 2
    assert sum(now.total == 3 and now.done == 3 for now in told) == 1


def _publish(repository: Path, organisation: str, module: str, version: str, *, needs: str = "") -> None:
    folder = repository.joinpath(*organisation.split("."), module, version)
    folder.mkdir(parents=True)
    dependency = (
        f"<dependency><groupId>org.example</groupId><artifactId>{needs}</artifactId><version>1.0</version></dependency>"
    )
    (folder / f"{module}-{version}.pom").write_text(
        f"<project><modelVersion>4.0.0</modelVersion><groupId>{organisation}</groupId><artifactId>{module}</artifactId>"
        f"<version>{version}</version><dependencies>{dependency if needs else ''}</dependencies></project>"
    )
    (folder / f"{module}-{version}.jar").write_bytes(b"PK\x05\x06" + bytes(18))
