"""`python -m bench.cutover`: see `bench.cutover.measure`."""

from __future__ import annotations

import sys

from bench.cutover.measure import main

if __name__ == "__main__":
    sys.exit(main())
