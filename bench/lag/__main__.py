"""`python -m bench.lag`: see `bench.lag.measure`."""

from __future__ import annotations

import sys

from bench.lag.measure import main

if __name__ == "__main__":
    sys.exit(main())
