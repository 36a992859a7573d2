"""`python -m bench.planner`: see `bench.planner.measure`."""

from __future__ import annotations

import sys

from bench.planner.measure import main

if __name__ == "__main__":
    sys.exit(main())
