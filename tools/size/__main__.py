"""`./run size`: lines of the product by package."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from tools.size.count import Size, core_of, count_packages, is_feature

ROOT = Path(__file__).parents[2]
PRODUCT = ("mirror_lib", "spark_jobs", "dags", "plugins")


def main(arguments: list[str] | None = None) -> int:
    """Print the table, or JSON; return the exit code."""
    parser = argparse.ArgumentParser(prog="./run size", description="Count the lines of the product by package.")
    parser.add_argument("--json", action="store_true", help="Print JSON.")
    parser.add_argument("--root", type=Path, default=ROOT, help="Another checkout, to compare with.")
    chosen = parser.parse_args(arguments)
    sizes = count_packages(chosen.root, PRODUCT)
    if chosen.json:
        print(json.dumps({name: {**asdict(size), "lines": size.lines} for name, size in sizes.items()}, indent=1))
    else:
        print("\n".join(table(sizes)))
    return 0


def table(sizes: Mapping[str, Size]) -> list[str]:
    """The table, packages by size, with sums."""
    by_size = sorted(sizes.items(), key=lambda each: -each[1].lines)
    rows = [
        *((name, size) for name, size in by_size if not is_feature(name)),
        *((name, size) for name, size in by_size if is_feature(name)),
        ("core (mirror_lib without features)", core_of(sizes)),
        ("all", sum(sizes.values(), Size())),
    ]
    return [
        f"{'package':36}{'files':>7}{'lines':>9}{'code':>9}{'docstrings':>12}{'comments':>10}{'blanks':>8}",
        *(
            f"{name:36}{size.files:7,}{size.lines:9,}{size.code:9,}{size.docstrings:12,}{size.comments:10,}"
            f"{size.blanks:8,}"
            for name, size in rows
        ),
    ]


if __name__ == "__main__":
    sys.exit(main())
