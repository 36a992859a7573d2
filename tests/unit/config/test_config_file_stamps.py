"""A configuration knows the files that it came from, so that readers who keep it notice when one changes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mirror_lib.config.file.stamps import FileStamp, are_unchanged
from mirror_lib.config.loader import InvalidConfigurationError, load

_PACKAGE = "org.apache.kafka.common.config.provider"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "secrets.properties").write_text("password = old-one\n")
    (tmp_path / "mounted").mkdir()
    (tmp_path / "mounted" / "servers").write_text("berlin:9092")
    path = tmp_path / "mirror.properties"
    path.write_text(
        f"""
        config.providers = file, dir
        config.providers.file.class = {_PACKAGE}.FileConfigProvider
        config.providers.dir.class = {_PACKAGE}.DirectoryConfigProvider
        clusters = berlin, paris
        berlin.bootstrap.servers = ${{dir:{tmp_path}/mounted:servers}}
        berlin.ssl.key.password = ${{file:{tmp_path}/secrets.properties:password}}
        paris.bootstrap.servers = paris:9092
        berlin->paris.enabled = true
        """
    )
    return path


def test_nothing_has_changed_right_after_reading_nor_for_a_file_that_is_still_missing(
    file: Path, tmp_path: Path
) -> None:
    config = load(file)

    assert {stamp.path.name for stamp in config.sources} == {"mirror.properties", "secrets.properties", "servers"}
    assert are_unchanged(config.sources)

    stamp = FileStamp.of(tmp_path / "none")
    assert stamp == FileStamp(tmp_path / "none")
    assert are_unchanged([stamp])


def test_another_content_is_a_change_even_of_the_same_size(file: Path, subtests: pytest.Subtests) -> None:
    for name in ["mirror.properties", "secrets.properties", "mounted/servers"]:
        with subtests.test(name):
            config = load(file)
            changed = file.parent / name

            changed.write_text(changed.read_text().replace("old-one", "new-one"))

            assert not are_unchanged(config.sources)


def test_a_mounted_secret_changes_by_its_link(file: Path, tmp_path: Path) -> None:
    """Kubernetes puts a new folder beside the old one and turns a link round."""
    for version in ("first", "second"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "servers").write_text("berlin:9092")
    os.utime(tmp_path / "second" / "servers", ns=(1, 1))
    os.utime(tmp_path / "first" / "servers", ns=(1, 1))
    link = tmp_path / "link"
    link.symlink_to("first")
    file.write_text(file.read_text().replace("/mounted", "/link"))
    config = load(file)

    link.unlink()
    link.symlink_to("second")

    assert not are_unchanged(config.sources)


def test_a_file_that_was_missing_is_noticed_when_it_comes(file: Path) -> None:
    secrets = file.parent / "secrets.properties"
    secrets.unlink()
    with pytest.raises(InvalidConfigurationError) as caught:
        load(file)
    assert are_unchanged(caught.value.sources)

    secrets.write_text("password = x\n")

    assert not are_unchanged(caught.value.sources)


@pytest.mark.parametrize("late", ["later", "allowed"])
def test_a_folder_that_was_missing_is_noticed_when_it_comes(file: Path, tmp_path: Path, late: str) -> None:
    if late == "later":
        file.write_text(file.read_text().replace("/mounted", "/later"))
    else:
        file.write_text(
            f"{file.read_text()}\nconfig.providers.dir.param.allowed.paths = {tmp_path}/mounted,{tmp_path}/allowed"
        )
    with pytest.raises(InvalidConfigurationError) as caught:
        load(file)
    assert are_unchanged(caught.value.sources)

    (tmp_path / late).mkdir()

    assert not are_unchanged(caught.value.sources)
