"""`python -m bench.distance`: see `bench.distance.measure`."""

from __future__ import annotations

import sys

from bench.distance.measure import main

if __name__ == "__main__":
    sys.exit(main())
