"""`python -m bench.transforms`: see `bench.transforms.measure`."""

from __future__ import annotations

import sys

from bench.transforms.measure import main

if __name__ == "__main__":
    sys.exit(main())
