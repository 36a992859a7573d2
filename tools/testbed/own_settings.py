"""The option `--set` of programs that write a flow's properties file themselves."""

from __future__ import annotations

import argparse
from collections.abc import Sequence


def add_own_settings(parser: argparse.ArgumentParser, whose: str = "our flow") -> None:
    """Add the option `--set`, which may repeat."""
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help=f"a property of {whose}; may repeat"
    )


def own_settings(texts: Sequence[str]) -> dict[str, str]:
    """Return the properties given by `--set`.

    Raises:
        ValueError: one has no value.
    """
    if wrong := [text for text in texts if "=" not in text]:
        raise ValueError(f"not KEY=VALUE: {', '.join(wrong)}.")
    return dict(text.split("=", 1) for text in texts)
