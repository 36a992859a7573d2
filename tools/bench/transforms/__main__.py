"""`./run bench transforms`: see `tools.bench.transforms.measure`."""

from __future__ import annotations

import sys

from tools.bench.transforms.measure import main

if __name__ == "__main__":
    sys.exit(main())
