"""`./run public`: write the stubs of public APIs; name exports that nobody uses."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.public_api.packages import public_apis, stub_of, unused

_ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    """Write and look; returns the exit code."""
    for package, api in public_apis(_ROOT).items():
        stub_of(_ROOT, package).write_text(api.stub(), encoding="utf-8")
    problems = [f"no other package uses {name}" for name in unused(_ROOT)]
    sys.stdout.writelines(f"{problem}\n" for problem in problems)
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
