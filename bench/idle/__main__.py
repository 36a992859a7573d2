"""`python -m bench.idle`: see `bench.idle.measure`."""

from __future__ import annotations

import sys

from bench.idle.measure import main

if __name__ == "__main__":
    sys.exit(main())
