"""`python -m bench.growth`: see `bench.growth.measure`."""

from __future__ import annotations

import sys

from bench.growth.measure import main

if __name__ == "__main__":
    sys.exit(main())
