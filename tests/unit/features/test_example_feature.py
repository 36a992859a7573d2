"""The feature of another package in `examples/feature`, installed as a company would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[3]


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
