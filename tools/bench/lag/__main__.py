"""`./run bench lag`: see `tools.bench.lag.measure`."""

from __future__ import annotations

import sys

from tools.bench.lag.measure import main

if __name__ == "__main__":
    sys.exit(main())
