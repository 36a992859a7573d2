"""Features come from entry points, and one that cannot be used stops nothing."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mirror_lib.airflow import dags
from mirror_lib.cli import commands
from mirror_lib.cli.main import app
from mirror_lib.errors import ConfigurationError
from mirror_lib.feature import Command, Feature, Hook
from mirror_lib.installed_features import GROUP, Features, installed_features, read_features

_PROJECT = Path(__file__).parents[3]
_FEATURES = _PROJECT / "mirror_lib" / "features"
_MANIFEST = "from mirror_lib.feature import Command, Feature\n"


@pytest.fixture(autouse=True)
def _no_commands_of_other_features() -> Iterator[None]:
    commands.commands.cache_clear()
    yield
    commands.commands.cache_clear()


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose modules can be imported."""
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def point(module: str, name: str = "audit") -> EntryPoint:
    return EntryPoint(name, f"{module}:FEATURE", GROUP)


def read(folder: Path, module: str, text: str) -> Features:
    (folder / f"{module}.py").write_text(_MANIFEST + text)
    return read_features([point(module)])


def test_given_a_feature_whose_code_is_deleted_then_it_is_left_out() -> None:
    assert read_features([point("mirror_lib.features.not_there.manifest")]) == Features()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("import a_module_that_is_not_there", "ModuleNotFoundError: No module named 'a_module_that_is_not_there'"),
        ("raise OSError('broken')", "OSError: broken"),
        ("FEATURE = 'audit'", "failing:FEATURE is not a Feature but a str"),
        ("", "AttributeError: module 'failing' has no attribute 'FEATURE'"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("FEATURE = Feature('audit', '', ['run'])", "TypeError: ['run'] is no Mapping"),
        ("FEATURE = Feature('audit', '', {'run': 'place'})", "TypeError: 'place' is no Command"),
        ("FEATURE = Feature('audit', '', {'a\\nb': Command('')})", "ValueError: 'a\\nb' is no name: use small"),
        ("FEATURE = Feature('audit', '', imports=('no_such.part',))", "it needs no_such.part, which is not installed"),
    ],
)
def test_given_a_feature_that_fails_to_load_or_has_anothers_name_then_it_is_named_and_the_others_are_there(
    installed: Path, monkeypatch: pytest.MonkeyPatch, text: str, why: str
) -> None:
    monkeypatch.delitem(sys.modules, "failing", raising=False)
    (installed / "failing.py").write_text(_MANIFEST + text)
    (installed / "working.py").write_text(_MANIFEST + "FEATURE = Feature('working', 'It works.')\n")

    found = read_features([point("failing"), point("working", "working"), point("working", "again")])

    assert [each.name for each in found.ready] == ["working"]
    assert [each.why[: len(why)] for each in found.failed[:1]] == [why]
    assert [each.why for each in found.failed[1:]] == ["another feature has the name working"]


def test_given_a_missing_dependency_then_its_commands_and_its_dags_name_feature_and_extra(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adds = "dict.fromkeys(('audit', 'gaps audit'), Command('needing', 'Audit.')), dags={'audits': 'needing:build'}"
    needs = "imports=('no_such_package',), extra='audit'"
    found = read(installed, "needing", f"FEATURE = Feature('audit', 'It audits.', {adds}, {needs})\n")
    for module in (commands, dags):
        monkeypatch.setattr(module, "installed_features", lambda: found)

    for words in ("audit", "gaps audit"):
        shown = CliRunner().invoke(app, words.split())
        assert f"mirror {words} needs the feature audit: it needs" in shown.output
        assert (shown.exit_code, "batch-mirror[audit]" in shown.output) == (2, True)
    with pytest.raises(ConfigurationError, match=r"audits need the feature audit: .*no_such") as caught:
        dags.builder("audits")
    assert caught.value.action == "Install batch-mirror[audit]."
    assert found.explain("plan") is None


def test_each_folder_of_a_feature_has_an_entry_point_and_a_place_in_the_contract() -> None:
    project = tomllib.loads((_PROJECT / "pyproject.toml").read_text())
    folders = {each.parent.name for each in _FEATURES.glob("*/manifest.py")}
    contracts = {each["name"]: each for each in project["tool"]["importlinter"]["contracts"]}
    layers = " ".join(contracts["Features build on each other one way"]["layers"])

    assert folders == set(project["project"]["entry-points"]["batch_mirror.features"])
    assert folders == set(re.findall(r"mirror_lib\.features\.(\w+)", layers))


def test_each_feature_names_those_that_it_builds_on() -> None:
    for each in installed_features().ready:
        texts = [path.read_text() for path in (_FEATURES / each.name).rglob("*.py")]
        found = {name for text in texts for name in re.findall(r"^\s*from (mirror_lib\.features\.\w+)", text, re.M)}
        named = {name for name in each.imports if name.startswith("mirror_lib.")}
        assert found - {f"mirror_lib.features.{each.name}"} == named, each.name


def test_given_a_hook_that_cannot_be_imported_then_it_is_logged_and_the_others_are_called(
    caplog: pytest.LogCaptureFixture,
) -> None:
    places = {"broken": "no_such_module:look", "useful": "builtins:len"}
    found = Features(tuple(Feature(name, "It looks.", hooks={Hook.PLAN: place}) for name, place in places.items()))
    assert found.at(Hook.PLAN) == [len]
    with pytest.raises(ConfigurationError, match=r"the feature broken cannot be used: .*no_such_module"):
        found.at(Hook.PLAN, all_needed=True)
    assert "feature broken" in caplog.text


def test_given_a_features_command_then_it_is_listed_in_its_place_and_replaces_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    added = {"audit": Command("audits", "Audit.", after="plan"), "run": Command("other", "Another run.")}
    monkeypatch.setattr(commands, "installed_features", lambda: Features((Feature("audit", "It audits.", added),)))

    listed = commands.commands.__wrapped__()
    names = list(listed)
    assert names[names.index("plan") + 1] == "audit"
    assert listed["run"].module == "mirror_lib.cli.run.command"
