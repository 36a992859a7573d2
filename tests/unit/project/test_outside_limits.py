"""The limits of input from outside, and their table in the guide."""

from __future__ import annotations

from pathlib import Path

from mirror_lib import outside_limits

_GUIDE = Path(__file__).parents[3] / "docs" / "security.md"
_KIBIBYTE, _MEBIBYTE = 1 << 10, 1 << 20


def _shown(name: str, value: float) -> str:
    if name.endswith("_BYTES"):
        return f"{value // _MEBIBYTE:,} MiB" if value >= _MEBIBYTE else f"{value // _KIBIBYTE:,} KiB"
    return f"{value:,g}" if value < 1e6 else f"{value:,}"


def test_the_guide_lists_every_limit_with_its_value() -> None:
    guide = _GUIDE.read_text(encoding="utf-8")
    rows = guide[guide.index("## Limits") : guide.index("## Attacks and what")].splitlines()
    limits = {name: value for name, value in vars(outside_limits).items() if name.isupper() and name[0] != "_"}
    for name, value in limits.items():
        (row,) = (row for row in rows if f"`{name}`" in row)
        assert _shown(name, value) in row, name
