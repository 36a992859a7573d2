"""The feature of another package in `examples/feature`, installed as a company would."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from mirror_lib.errors import LedgerError
from mirror_lib.ledger.feature_tables import Migrations
from mirror_lib.ledger.models import METADATA
from tests.support.ledger.ledgers import ready_ledger

PROJECT = Path(__file__).resolve().parents[3]
CLUSTERS = "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Of processes in which the package is installed."""
    folder = tmp_path_factory.mktemp("feature")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=PROJECT / "examples" / "feature", check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "installed")
    path = [str(folder / "installed"), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}


def mirror(environment: dict[str, str], *words: str, exit_code: int = 0) -> str:
    command = [sys.executable, "-m", "mirror_lib.cli.main", *words]
    done = subprocess.run(command, env=environment, cwd=PROJECT, check=False, capture_output=True, text=True)
    assert done.returncode == exit_code, done.stderr
    return done.stdout


def test_given_the_package_then_its_command_is_listed_and_works(environment: dict[str, str]) -> None:
    listed = mirror(environment, "--help")
    assert listed.index("│ status ") < listed.index("│ owners ") < listed.index("│ topics ")

    document = json.loads(mirror(environment, "owners", "billing.invoices", "--json"))
    assert document["owners"] == [{"topic": "billing.invoices", "owner": "billing"}]
    (owners,) = [
        each for each in json.loads(mirror(environment, "features", "--json"))["features"] if each["name"] == "owners"
    ]
    assert (owners["state"], owners["commands"]) == ("ready", "owners")


@pytest.fixture
def tables(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(environment["PYTHONPATH"].split(os.pathsep)[0])
    yield importlib.import_module("mirror_owners.tables")
    METADATA.remove(METADATA.tables["mirror_owners_owner"])
    del sys.modules["mirror_owners.tables"]


def test_given_the_packages_table_then_its_rows_are_set_aside_with_their_flow_although_it_is_not_installed(
    environment: dict[str, str], tmp_path: Path, tables: ModuleType
) -> None:
    url = f"sqlite:///{tmp_path}/ledger.sqlite3"
    with ready_ledger(url) as ledger:
        owners = tables.Owners(ledger)
        for flow in ("A->B", "A->B#backfill-x", "B->A"):
            owners.save(tables.OwnerRow(flow, "orders", "sales"))
        ledger.cluster_pairs.keep("A->B", "c-1", "c-2")

        aside = ledger.cluster_pairs.begin_anew("A->B", "c-1", "c-3", by="ann")

        flows = ("A->B", "A->B#backfill-x", aside, f"{aside}#backfill-x", "B->A")
        assert [len(owners.of_flow(flow)) for flow in flows] == [0, 0, 1, 1, 1]

    config = tmp_path / "mirror.properties"
    config.write_text(f"{CLUSTERS}mirror.ledger.url = {url}\n")
    gone = " ".join(mirror({**os.environ}, "status", "--config", str(config)).split())
    assert "tables of the feature owners, which cannot be used here: they stay untouched" in gone
    assert "feature owners" not in mirror(environment, "status", "--config", str(config))


def test_given_tables_of_a_newer_version_or_with_another_features_name_then_they_are_refused(
    tmp_path: Path, tables: ModuleType
) -> None:
    with ready_ledger(f"sqlite:///{tmp_path}/ledger.sqlite3") as ledger:
        with pytest.raises(LedgerError, match="the feature audit makes the table mirror_owners_owner"):
            ledger.migrate(Migrations("audit", "mirror_owners:migrations", head="0001"))
        assert ledger.features_with_tables() == ()

        tables.Owners(ledger)
        with pytest.raises(LedgerError, match=r"a newer version of the feature owners \(0001\)"):
            ledger.migrate(Migrations("owners", "mirror_lib.ledger:migrations/versions", head="0021"))
        assert ledger.features_with_tables() == ("owners",)


def test_given_the_packages_setting_then_it_is_checked_shown_and_read_only_where_the_package_can_be_used(
    environment: dict[str, str], tmp_path: Path
) -> None:
    config, setting = tmp_path / "mirror.properties", "mirror.owners.unknown"
    config.write_text(f"{CLUSTERS}B.{setting} = other\nA->B.mirror.owners.unknwon = sales\n")
    words = ("config", "check", str(config), "--json")
    under_cluster, misspelt = json.loads(mirror(environment, *words, exit_code=2))["problems"]
    assert "not allowed under a cluster" in under_cluster["message"]
    assert misspelt["suggestion"] == f"did you mean A->B.{setting}?"

    config.write_text(f"{CLUSTERS}{setting} = team\nA->B.{setting} = sales\n")
    reads = "from mirror_lib.config.loader import load; from mirror_owners.preflight import check_flow; import sys; "
    reads += "print(*check_flow(load(sys.argv[1]).flow('A->B')))"
    command = [sys.executable, "-c", reads, str(config)]
    read = subprocess.run(command, env=environment, cwd=PROJECT, check=True, capture_output=True, text=True).stdout
    assert read == "Topics without a dot in their names belong to sales.\n"
    shown = json.loads(mirror(environment, "config", "show", str(config), "--flow", "A->B", "--json"))["settings"]
    assert [each["value"] for each in shown if each["key"] == setting] == ["sales"]

    path = environment["PYTHONPATH"].split(os.pathsep)
    shutil.copytree(path[0], tmp_path / "needing")
    manifest = tmp_path / "needing/mirror_owners/manifest.py"
    manifest.write_text(manifest.read_text().replace("settings=", "imports=('no_such_package',), settings="))
    failing = {**environment, "PYTHONPATH": os.pathsep.join([str(tmp_path / "needing"), *path[1:]])}
    for where, said in (
        (failing, "it needs the feature owners: it needs no_such_package"),
        (os.environ, "not a setting"),
    ):
        problems = json.loads(mirror({**where}, *words, exit_code=2))["problems"]
        assert [said in each["message"] for each in problems] == [True, True]
