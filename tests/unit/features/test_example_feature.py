"""The feature of another package in `examples/feature`, installed as a company would."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from mirror_lib.errors import LedgerError
from mirror_lib.ledger import METADATA, Migrations
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


def mirror(environment: dict[str, str], *words: str) -> str:
    command = [sys.executable, "-m", "mirror_lib.cli.main", *words]
    return subprocess.run(command, env=environment, cwd=PROJECT, check=True, capture_output=True, text=True).stdout


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
    """The package's module of tables, imported here."""
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
