"""`./run bench growth`: see `tools.bench.growth.measure`."""

from __future__ import annotations

import sys

from tools.bench.growth.measure import main

if __name__ == "__main__":
    sys.exit(main())
