"""`./run bench cutover`: see `tools.bench.cutover.measure`."""

from __future__ import annotations

import sys

from tools.bench.cutover.measure import main

if __name__ == "__main__":
    sys.exit(main())
