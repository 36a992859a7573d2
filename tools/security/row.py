"""One row of `./run security` in a process of its own, for clients that the project's environment has not."""

from __future__ import annotations

import json
import sys
import time

from tools.security.flow_tasks import Row, try_tasks
from tools.security.results import WayResult


def try_row(row: Row) -> WayResult:
    """Run all tasks of a row."""
    began = time.monotonic()
    result = WayResult(row.way)
    result.tasks.extend(try_tasks(row))
    result.seconds = time.monotonic() - began
    return result


def main() -> int:
    """Read the row as JSON from the only argument; write the result to standard output as one line of JSON."""
    print(json.dumps(try_row(Row.from_json(sys.argv[1])).to_dict()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
