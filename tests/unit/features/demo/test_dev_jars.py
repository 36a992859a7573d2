"""Sets of jars: none is used that is not what it was. Ivy itself: tests/integration/features/demo/test_fetch.py."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mirror_lib.features.demo import jars
from mirror_lib.features.demo.jars import Artifact, JarsUnavailableError


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
