"""`./run bench distance`: see `tools.bench.distance.measure`."""

from __future__ import annotations

import sys

from tools.bench.distance.measure import main

if __name__ == "__main__":
    sys.exit(main())
