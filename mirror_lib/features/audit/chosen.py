"""The texts of settings and options of audits."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import PurePath
from typing import Final

from mirror_lib.config.first_start import parse_time
from mirror_lib.config.schedule import longest_interval_seconds, parse_schedule
from mirror_lib.errors import ConfigurationError
from mirror_lib.features.audit.sampling import Sample
from mirror_lib.topology.java_regex import PatternList, compile_list

#: All records that both clusters hold.
ALL: Final = "all"
#: node_exporter reads no other files.
_METRICS_END = ".prom"


def since_ms(text: str) -> int | None:
    """Epoch milliseconds of an interval until now such as `1h`, or of a time; None for `all`.

    Raises:
        ConfigurationError: the text is none of these.
    """
    text = text.strip()
    if text == ALL:
        return None
    try:
        interval = parse_schedule(text)
    except ValueError:
        interval = None
    if isinstance(interval, timedelta):
        return int((datetime.now(UTC) - interval).timestamp() * 1000)
    try:
        return parse_time(text)
    except ConfigurationError as error:
        raise ConfigurationError(
            f"{text} is neither an interval nor a time.",
            action="Write an interval until now (30m, 1h, 2d), or a time (epoch milliseconds or ISO 8601).",
        ) from error


def topics_pattern(text: str, name: str) -> PatternList:
    """What selects topics: names or Java regexes, separated by commas, as in MirrorMaker 2's `topics`.

    Args:
        name: of the option, for messages.

    Raises:
        ConfigurationError: an expression is not valid, or there is none.
    """
    try:
        found = compile_list([each.strip() for each in text.split(",") if each.strip()])
        if found is None:
            raise ValueError("it is empty")
        return found
    except ValueError as error:
        raise ConfigurationError(f"{name}: {error}.", action="Correct the expression.") from error


def sample_of(text: str, seed: int | None) -> Sample:
    """The sample with a share such as `1%` or `0.01`.

    Args:
        text: the share.
        seed: None chooses one.

    Raises:
        ConfigurationError: the text is no share.
    """
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise ConfigurationError(f"--sample {text} is no share.", action="Write it as 1% or 0.01.")
    return Sample(share, random.SystemRandom().randrange(1 << 31) if seed is None else seed)


def check_since(text: str) -> None:
    """Check `mirror.audit.since`.

    Raises:
        ValueError: it cannot be used; the message completes "must be".
    """
    try:
        if text.strip():
            since_ms(text)
    except ConfigurationError as error:
        raise ValueError(f"{ALL}, an interval such as 2h, or a time such as 2026-01-31T00:00:00Z") from error


def check_metrics(text: str) -> None:
    """Check `mirror.audit.metrics`.

    Raises:
        ValueError: it cannot be used; the message completes "must be".
    """
    if text.strip() and not (PurePath(text.strip()).is_absolute() and text.strip().endswith(_METRICS_END)):
        raise ValueError(f"an absolute path that ends in {_METRICS_END}")


def twice_the_interval(schedule: str) -> str:
    """Return what an audit of a schedule compares by default: records of the longest time between two runs, twice;
    `all` if runs are not periodic.
    """
    seconds = longest_interval_seconds(schedule)
    return ALL if seconds is None else f"{2 * int(seconds)}s"
