"""stub"""

from pathlib import Path


def write_example(_: Path) -> str:
    return ""
