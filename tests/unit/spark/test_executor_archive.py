"""The archive of Python packages that Spark's executors unpack."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import grimp
import pytest
from packaging.requirements import Requirement
from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.errors import ConfigurationError
from mirror_lib.features.pack import command
from mirror_lib.features.pack.executor_archive import (
    EXECUTOR_DISTRIBUTIONS,
    LAUNCHER,
    ExecutorEnvironment,
    PackedDistribution,
    PackedFile,
    executor_environment,
    installed_distributions,
    write_archive,
)

_PROJECT = next(folder for folder in Path(__file__).parents if (folder / "pyproject.toml").is_file())
#: Spark brings its own modules; gssapi is taken along where it is installed.
_FROM_ELSEWHERE = {"pyspark", "gssapi"}
_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture
def small(tmp_path: Path) -> ExecutorEnvironment:
    """An environment of one package with one module."""
    module = tmp_path / "greeting" / "__init__.py"
    module.parent.mkdir()
    module.write_text("TEXT = 'hello'\n")
    file = PackedFile(f"lib/python{_VERSION}/site-packages/greeting/__init__.py", module)
    return ExecutorEnvironment(_VERSION, "linux-x86_64", (PackedDistribution("greeting", "1.0", (file,)),))


@pytest.fixture
def unpacked(small: ExecutorEnvironment, tmp_path: Path) -> Path:
    """That environment, as Spark unpacks it."""
    return _unpacked(small, tmp_path)


def _unpacked(environment: ExecutorEnvironment, folder: Path) -> Path:
    write_archive(environment, folder / "packed.tar.gz")
    with tarfile.open(folder / "packed.tar.gz") as archive:
        # Pythons before 3.11.4, such as that of Debian 12, know no filters.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(folder / "unpacked")
    return folder / "unpacked"


def _run(unpacked: Path, program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [f"./{LAUNCHER}", "-c", program], cwd=unpacked, env=environment, capture_output=True, text=True, check=False
    )


def test_tasks_import_nothing_that_is_not_packed_and_nothing_of_airflow_or_sql_is_packed() -> None:
    """Not at any time: imports inside of functions count too."""
    graph = grimp.build_graph(
        "mirror_lib", "spark_jobs", include_external_packages=True, exclude_type_checking_imports=True
    )
    owners = packages_distributions()
    packed = {each.name for each in executor_environment().distributions}

    for task in ("spark_jobs.copy_task", "spark_jobs.verify_task", "spark_jobs.daemon"):
        needed = {name for name in graph.find_upstream_modules(task) if graph.is_module_squashed(name)}
        missing = {
            name
            for name in needed - set(sys.stdlib_module_names) - _FROM_ELSEWHERE
            if not packed.intersection(owners.get(name.partition(".")[0], ()))
        }
        assert needed >= {"aiokafka", "pyarrow"}, task
        assert missing == set(), task
    unneeded = ("apache-airflow", "sqlalchemy", "pyspark", "pandas")
    assert not [name for name in packed if name.lower().startswith(unneeded)]


def test_the_extra_of_the_package_names_the_same_distributions() -> None:
    project = tomllib.loads((_PROJECT / "pyproject.toml").read_text())["project"]

    extra = project["optional-dependencies"]["executor"]

    assert tuple(Requirement(text).name for text in extra) == EXECUTOR_DISTRIBUTIONS
    assert set(extra) <= {*project["dependencies"], *project["optional-dependencies"]["spark"]}


def test_what_a_distribution_needs_comes_along_and_what_is_not_installed_cannot_be_packed() -> None:
    names = [each.name.lower().replace("_", "-") for each in installed_distributions(["pydantic"])]

    assert {"pydantic", "pydantic-core", "typing-extensions"} <= set(names)
    assert names == sorted(names)
    with pytest.raises(ConfigurationError, match="no-such-distribution, which executors need, is not installed"):
        installed_distributions(["no-such-distribution"])
    # An optional one may be missing.
    assert installed_distributions([], ["no-such-distribution"]) == ()


def test_the_same_packages_give_the_same_bytes(small: ExecutorEnvironment, tmp_path: Path) -> None:
    first, second = tmp_path / "first.tar.gz", tmp_path / "second.tar.gz"
    write_archive(small, first)
    small.distributions[0].files[0].source.touch()
    write_archive(small, second)

    assert first.read_bytes() == second.read_bytes()


def test_a_failed_write_leaves_the_archive_before_and_a_place_that_cannot_be_written_is_named(
    small: ExecutorEnvironment, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match="cannot be written"):
        write_archive(small, tmp_path / "file" / "packed.tar.gz")

    output = tmp_path / "packed.tar.gz"
    output.write_bytes(b"before")
    small.distributions[0].files[0].source.unlink()

    with pytest.raises(FileNotFoundError):
        write_archive(small, output)

    assert output.read_bytes() == b"before"
    assert {each.name for each in tmp_path.iterdir()} >= {"file", "packed.tar.gz"}
    assert not [each for each in tmp_path.iterdir() if each.name.startswith(".")]


def test_no_name_that_others_could_guess_is_followed_or_removed(small: ExecutorEnvironment, tmp_path: Path) -> None:
    victim, output = tmp_path / "victim", tmp_path / "packed.tar.gz"
    victim.write_text("precious")
    planted = [output.with_name(f"{output.name}.part"), output.with_name(f".{output.name}.partial")]
    for each in planted:
        each.symlink_to(victim)

    write_archive(small, output)

    assert victim.read_text() == "precious"
    assert all(each.is_symlink() for each in planted)
    assert not output.is_symlink()
    assert tarfile.is_tarfile(output)


def test_the_launcher_runs_a_python_of_the_machine_with_the_packed_modules_compiled(
    unpacked: Path, tmp_path: Path
) -> None:
    # Before what Spark puts on the path.
    other = tmp_path / "other" / "greeting.py"
    other.parent.mkdir()
    other.write_text("TEXT = 'other'\n")
    shown = "import greeting, importlib.util, sys; print(greeting.TEXT, *sys.version_info[:2], greeting.__cached__)"
    variables = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(other.parent), "PYTHONDONTWRITEBYTECODE": "1"}

    text, *version, compiled = _run(unpacked, shown, **variables).stdout.split()

    assert [text, *version] == ["hello", *_VERSION.split(".")]
    assert Path(compiled).is_file()


def test_the_interpreter_can_be_named(unpacked: Path) -> None:
    base = getattr(sys, "_base_executable", sys.executable)

    done = _run(unpacked, "import sys; print(sys.executable)", PATH="/usr/bin:/bin", MIRROR_EXECUTOR_PYTHON=base)

    assert Path(done.stdout.strip()).resolve() == Path(base).resolve()


def test_a_machine_without_the_right_python_is_told_so(small: ExecutorEnvironment, tmp_path: Path) -> None:
    """Compiled modules fit one version of Python."""
    unpacked = _unpacked(ExecutorEnvironment("9.9", small.platform, small.distributions), tmp_path)

    done = _run(unpacked, "", PATH="/usr/bin:/bin")

    assert done.returncode == 1
    assert "no Python 9.9 on this machine" in done.stderr
    assert "spark.executorEnv.MIRROR_EXECUTOR_PYTHON" in done.stderr


def test_the_command_tells_what_it_has_packed(
    small: ExecutorEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "executor_environment", lambda: small)
    output = tmp_path / "out.tar.gz"

    result = CliRunner().invoke(app, ["spark", "pack", "--output", str(output), "--json"])

    told = json.loads(result.stdout)
    assert result.exit_code == 0
    assert told["distributions"] == [{"name": "greeting", "version": "1.0", "files": 1, "bytes": 15}]
    assert told["archive"] == {
        "path": str(output),
        "bytes": output.stat().st_size,
        "python": _VERSION,
        "platform": "linux-x86_64",
    }
    # The launcher is where Spark unpacks it.
    assert told["settings"] == {
        "spark.archives": f"{output}#environment",
        "spark.pyspark.python": "./environment/bin/python",
    }
