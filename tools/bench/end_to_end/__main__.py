"""`./run bench end-to-end`: see `tools.bench.end_to_end.measure`."""

from __future__ import annotations

import sys

from tools.bench.end_to_end.measure import main

if __name__ == "__main__":
    sys.exit(main())
