"""`./run bench dag-parsing`: how long Airflow's DAG processor takes to parse the DAG files of many flows.

Every file of `dags/` is imported in a process of its own, as the DAG processor does it, when Airflow itself is loaded.
`--serialize` also measures what Airflow does next with the DAGs of a file, which is not this project's code.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from mirror_lib.config.local_state import CONFIG_VARIABLE

#: The goal for 500 flows.
GOAL_SECONDS = 5.0
_PROJECT = Path(__file__).resolve().parents[2]
_DAG_FILES = _PROJECT / "dags"
_CHILD = """\
import importlib.util, json, sys, time
# What every DAG process has loaded before it reads a file.
import airflow.dag_processing.dagbag, airflow.sdk.definitions.dag, airflow.serialization.serialized_objects
import airflow.providers.standard.operators.python, airflow.providers.apache.spark.operators.spark_submit
found = {}
path, serialize = sys.argv[1], sys.argv[2] == "True"
before = time.perf_counter()
import mirror_lib.airflow.files.flow_dags
found["modules"] = time.perf_counter() - before
began, cpu = time.perf_counter(), time.process_time()
spec = importlib.util.spec_from_file_location("measured", path)
module = importlib.util.module_from_spec(spec)
sys.modules["measured"] = module
from airflow.sdk.definitions._internal.contextmanager import DagContext
DagContext.current_autoregister_module_name = "measured"
spec.loader.exec_module(module)
found["seconds"], found["cpu"] = time.perf_counter() - began, time.process_time() - cpu
dags = [dag for dag, _ in DagContext.autoregistered_dags]
found["dags"] = len(dags)
if serialize:
    from airflow.serialization.serialized_objects import DagSerialization
    began = time.perf_counter()
    for dag in dags:
        DagSerialization.to_dict(dag)
    found["serialized"] = time.perf_counter() - began
print(json.dumps(found))
"""


@dataclass(frozen=True, slots=True)
class Parsed:
    """The measurements of one DAG file."""

    file: str
    dags: int
    #: Imports of this project's modules and their dependencies, without Airflow.
    modules: float
    #: Reading the configuration and making the DAGs.
    seconds: float
    #: CPU time of that: the rest went to other processes of this machine.
    cpu: float
    #: Airflow's serialization of the DAGs; None if it was not measured.
    serialized: float | None


def configuration(flows: int, clusters: int) -> Iterator[str]:
    """Yield the lines of a file with this many flows between clusters, each flow with its own settings."""
    names = [f"cluster{number}" for number in range(clusters)]
    yield "clusters = " + ", ".join(names)
    for name in names:
        yield f"{name}.bootstrap.servers = {name}-1.example:9092,{name}-2.example:9092"
        yield f"{name}.security.protocol = SASL_SSL"
        yield f"{name}.sasl.mechanism = SCRAM-SHA-512"
        yield (
            f"{name}.sasl.jaas.config = org.apache.kafka.common.security.scram.ScramLoginModule required "
            f'username="mirror" password="of {name}";'
        )
    pairs = [(a, b) for a in names for b in names if a != b]
    if flows > len(pairs):
        raise ValueError(f"{clusters} clusters allow at most {len(pairs)} flows.")
    for number, (source, target) in enumerate(pairs[:flows]):
        flow = f"{source}->{target}"
        yield f"{flow}.enabled = true"
        yield f"{flow}.topics = team{number}-.*, shared-.*"
        yield f"{flow}.mirror.schedule = 5m"
        yield f"{flow}.tasks.max = 4"


def measure(files: Sequence[Path], config: Path, *, serialize: bool) -> Iterator[Parsed]:
    """Parse each file in a fresh process."""
    with tempfile.TemporaryDirectory(prefix="mirror-dag-parsing-") as home:
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("AIRFLOW_")},
            "AIRFLOW_HOME": home,
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "PYTHONPATH": str(_PROJECT),
            CONFIG_VARIABLE: str(config),
        }
        for file in files:
            done = subprocess.run(
                [sys.executable, "-c", _CHILD, str(file), str(serialize)],
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                raise RuntimeError(f"{file.name} cannot be parsed:\n{done.stderr}")
            found = json.loads(done.stdout.splitlines()[-1])
            yield Parsed(
                file.name, found["dags"], found["modules"], found["seconds"], found["cpu"], found.get("serialized")
            )


def show(console: Console, measured: Sequence[Parsed], flows: int) -> None:
    """Print a table, with the sum of all files."""
    table = Table(title=f"Parsing the DAG files of {flows} flows, seconds without Airflow's own import")
    for column in ("file", "DAGs", "modules", "reading and building", "CPU of that", "Airflow's serialization"):
        table.add_column(column, justify="left" if column == "file" else "right")
    for each in measured:
        figures = (each.modules, each.seconds, each.cpu, each.serialized)
        table.add_row(each.file, str(each.dags), *("" if figure is None else f"{figure:.2f}" for figure in figures))
    console.print(table)
    total = sum(each.modules + each.seconds for each in measured)
    slowest = max(each.modules + each.seconds for each in measured)
    console.print(f"All files: {total:.2f} s; the slowest: {slowest:.2f} s (goal for 500 flows: {GOAL_SECONDS:g} s).")


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; the exit code does not depend on the result, since that depends on the machine."""
    parser = argparse.ArgumentParser(prog="bench dag-parsing", description=__doc__)
    parser.add_argument(
        "--flows", type=int, default=500, metavar="N", help="Number of flows in the file (default 500)."
    )
    parser.add_argument(
        "--clusters", type=int, default=30, metavar="N", help="Number of clusters in the file (default 30)."
    )
    parser.add_argument(
        "--files", nargs="*", metavar="NAME", help="Measure only these files of dags/, for example flows.py."
    )
    parser.add_argument("--serialize", action="store_true", help="Measure Airflow's serialization, too.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="Write all measurements to this file, as JSON.")
    arguments = parser.parse_args(argv)
    files = [_DAG_FILES / name for name in arguments.files or ()] or sorted(_DAG_FILES.glob("*.py"))
    with tempfile.TemporaryDirectory(prefix="mirror-dag-parsing-") as folder:
        config = Path(folder, "mirror.properties")
        config.write_text("\n".join(configuration(arguments.flows, arguments.clusters)) + "\n", encoding="utf-8")
        measured = list(measure(files, config, serialize=arguments.serialize))
    show(Console(width=None if sys.stdout.isatty() else 118), measured, arguments.flows)
    if arguments.json is not None:
        rows = [{name: getattr(each, name) for name in Parsed.__slots__} for each in measured]
        arguments.json.write_text(json.dumps({"flows": arguments.flows, "files": rows}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
