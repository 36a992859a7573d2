"""The option `--record-age` of programs that write records to measure or to test their copying.

Brokers forget the producer of records older than a day, and the copy handles such records differently
(`mirror_lib.copy.transfer.old_records`).
"""

from __future__ import annotations

import argparse
from datetime import timedelta

from mirror_lib.config.schedule import parse_schedule


def add_record_age(parser: argparse.ArgumentParser) -> None:
    """Add the option; its value is in seconds."""
    parser.add_argument(
        "--record-age",
        type=record_age,
        default=0.0,
        metavar="DURATION",
        help="write records with timestamps that lie so far back, such as 2d or 36h (default: the present)",
    )


def record_age(text: str) -> float:
    """Return the seconds of a duration, written like `mirror.schedule`.

    Raises:
        argparse.ArgumentTypeError: it is not a duration.
    """
    try:
        found = parse_schedule(text)
    except ValueError:
        found = None
    if not isinstance(found, timedelta):
        raise argparse.ArgumentTypeError(f"not a duration such as 45m, 36h or 2d: {text!r}")
    return found.total_seconds()


def format_age(seconds: float) -> str:
    """Format the age of records for the option."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:.0f}{unit}"
    return f"{seconds:.0f}s"
