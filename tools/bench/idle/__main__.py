"""`./run bench idle`: see `tools.bench.idle.measure`."""

from __future__ import annotations

import sys

from tools.bench.idle.measure import main

if __name__ == "__main__":
    sys.exit(main())
