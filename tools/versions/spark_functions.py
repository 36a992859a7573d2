"""`./run versions --spark-functions`: the names of all SQL functions, by version of Spark, as data.

Transforms allow functions by name (`mirror_lib.features.transforms.sql.spark_functions`). A test compares those names
with this data, so that no function of a supported Spark is allowed without a decision.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from mirror_lib.errors import MirrorError
from tools.versions.clusters import Log
from tools.versions.environments import environment_of
from tools.versions.spark import SPARKS

#: Version of Spark -> sorted names, operators too.
DATA = Path(__file__).with_name("spark_functions.json")
_UNTIL = "2027-12-31"
_SECONDS = 900
#: `SHOW SYSTEM FUNCTIONS` lists scalar, aggregate and table functions.
_PROGRAM = """\
import json, sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
found = sorted({row[0].rpartition(".")[2] or row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()})
with open(sys.argv[1], "w") as file:
    json.dump(found, file)
spark.stop()
"""


class FunctionsNotListedError(MirrorError):
    """A Spark did not list its functions."""

    reason = "environment"


def stored_functions() -> dict[str, list[str]]:
    """Return the data."""
    found: dict[str, list[str]] = json.loads(DATA.read_text(encoding="utf-8"))
    return found


def write_functions(versions: Sequence[str], folder: Path, log: Log) -> None:
    """Ask these versions of Spark for their functions, and write them into the data.

    Raises:
        MirrorError: an environment could not be made, or Spark did not start.
    """
    # Nothing runs in Python here, so any of them will do.
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    for version in versions:
        release, _ = SPARKS[version]
        log(f"Spark {release}: listing its functions")
        made = environment_of(f"functions-{version}", python, [f"pyspark=={release}", "setuptools"], until=_UNTIL)
        written = folder / f"{version}.json"
        variables = {name: text for name, text in os.environ.items() if not name.startswith(("SPARK_", "PYTHON"))}
        done = subprocess.run(
            [made.program("python"), "-c", _PROGRAM, written],
            env={**variables, "PYSPARK_PYTHON": str(made.program("python"))},
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        if done.returncode:
            raise FunctionsNotListedError(f"Spark {release} did not list its functions: {done.stderr[-600:]}")
        names: list[str] = json.loads(written.read_text(encoding="utf-8"))
        log(f"Spark {release}: {len(names)} functions")
        found = {**(stored_functions() if DATA.is_file() else {}), version: names}
        text = json.dumps(dict(sorted(found.items())), indent=0)
        DATA.write_text(text + "\n", encoding="utf-8")
