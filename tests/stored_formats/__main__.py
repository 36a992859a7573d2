"""`./run stored-formats VERSION`: write down what this version stores, once and for all, for later versions to read."""

from __future__ import annotations

import argparse
import logging
import shutil
import sys
import tomllib
from collections.abc import Sequence

from tests.stored_formats.folder import HERE


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the folder; return 0 when it is complete, 2 when it may not be written."""
    parser = argparse.ArgumentParser(prog="./run stored-formats", description=__doc__)
    parser.add_argument("version", help="the version of this project, as pyproject.toml has it")
    version = parser.parse_args(arguments).version
    folder = HERE / version
    if version != (present := _project_version()):
        print(f"This is version {present}; {version} is written by its own code.", file=sys.stderr)
        return 2
    if folder.exists():
        print(f"{folder.name} is written already, and is never changed again.", file=sys.stderr)
        return 2
    # Late, so that a refusal needs neither Kafka clients nor Airflow.
    from tests.stored_formats.writing import write_folder

    # What a story of faults logs is no news; what goes wrong with the writing itself is raised.
    logging.disable(logging.CRITICAL)
    try:
        write_folder(folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return 0


def _project_version() -> str:
    project = tomllib.loads((HERE.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    return project["project"]["version"]


if __name__ == "__main__":
    sys.exit(main())
