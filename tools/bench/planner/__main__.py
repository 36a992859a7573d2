"""`./run bench planner`: see `tools.bench.planner.measure`."""

from __future__ import annotations

import sys

from tools.bench.planner.measure import main

if __name__ == "__main__":
    sys.exit(main())
