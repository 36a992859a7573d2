"""The first offset of partitions that were never copied: the values of `mirror.first.start` and
`mirror.first.start.topics`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from mirror_lib.config.frozen import Frozen
from mirror_lib.errors import ConfigurationError, Where
from mirror_lib.topology.bounded_pattern import BoundedPattern
from mirror_lib.topology.java_regex import compile_java

if TYPE_CHECKING:
    from mirror_lib.config.model import FlowConfig


class FirstStart(Frozen):
    """Where a partition without a position begins; exactly one field is set.

    Attributes:
        reset: `earliest` or `latest`, as `auto.offset.reset`.
        timestamp_ms: epoch milliseconds: the first record with this timestamp or a later one.
        offset: this offset; the log start or end offset if the log does not have it.
    """

    reset: str | None = None
    timestamp_ms: int | None = None
    offset: int | None = None


class TopicFirstStart(Frozen):
    """A first start for the topics whose whole name matches a Java regex."""

    pattern: str
    start: FirstStart


EARLIEST, LATEST = FirstStart(reset="earliest"), FirstStart(reset="latest")

_RESETS = ("earliest", "latest")
OFFSET_RESET = "auto.offset.reset"
NO_RESET = "none"
_NUMBER = "([-+]?[0-9]+)"
_DURATION = re.compile(
    rf"([-+]?)P(?:{_NUMBER}D)?(?:T(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}(?:[.,]([0-9]{{0,9}}))?S)?)?", re.IGNORECASE
)
_OFFSET = re.compile(r"offset\s+([0-9]{1,18})")
_MEANING = "earliest, latest, an offset such as `offset 4711`, or a time such as 2026-01-31T00:00:00Z"


def parse_first_start(text: str) -> FirstStart | None:
    """Return one first start; None for an empty text.

    Raises:
        ValueError: it is not valid; the message completes "must be".
    """
    text = text.strip()
    if not text:
        return None
    if text.lower() in _RESETS:
        return FirstStart(reset=text.lower())
    if match := _OFFSET.fullmatch(text):
        return FirstStart(offset=int(match[1]))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(_MEANING) from None
    # A time without a zone would depend on the machine: it is read as UTC, as Kafka's tools do.
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    milliseconds = round(moment.timestamp() * 1000)
    if milliseconds < 0:
        raise ValueError("a time after 1970")
    return FirstStart(timestamp_ms=milliseconds)


def parse_time(text: str) -> int:
    """Epoch milliseconds of a number or an ISO time; one without a zone is UTC, as Kafka's tools read it.

    Raises:
        ConfigurationError: it is neither.
    """
    try:
        if text.isdecimal():
            return int(text)
        moment = datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
        milliseconds = round(moment.timestamp() * 1000)
    except (ValueError, OverflowError):
        milliseconds = -1
    if milliseconds < 0:
        raise ConfigurationError(
            f"{text!r} is not a valid time.", action="Use epoch milliseconds, or a time such as 2026-01-31T00:00:00Z."
        )
    return milliseconds


def parse_offset_reset(text: str) -> FirstStart:
    """Parse `auto.offset.reset` of Java's consumer (`AutoOffsetResetStrategy`, KIP-1106); a duration is relative to
    now, and `none` is the earliest offset.

    Raises:
        ValueError: Java rejects it, or a batch cannot apply it; the message completes "must be".
    """
    if text in _RESETS:
        return FirstStart(reset=text)
    if text == NO_RESET:
        # MM2's consumer fails then, and its task copies nothing. No reset is needed for copied partitions here: a run
        # never skips records that the source has deleted.
        return EARLIEST
    kind, colon, duration = text.partition(":")
    if kind != "by_duration" or not colon:
        raise ValueError("earliest, latest, or by_duration: and a duration such as P7D")
    started = datetime.now(UTC) - _duration(duration)
    return FirstStart(timestamp_ms=max(0, round(started.timestamp() * 1000)))


def _duration(text: str) -> timedelta:
    """Parse what `java.time.Duration.parse` accepts, if it is not negative."""
    found = _DURATION.fullmatch(text)
    if found is None or text.upper().endswith(("P", "T")):
        raise ValueError(f"by_duration: and an ISO 8601 duration such as P7D or PT36H; {text!r} is not valid")
    sign, days, hours, minutes, seconds, fraction = found.groups()
    try:
        total = timedelta(
            days=int(days or 0),
            hours=int(hours or 0),
            minutes=int(minutes or 0),
            seconds=float(f"{seconds or 0}.{fraction or 0}"),
        )
        total = -total if sign == "-" else total
        if total >= timedelta(0) and datetime.now(UTC) - total:
            return total
    except OverflowError:
        pass
    raise ValueError(f"by_duration: and a duration between zero and now; {text!r} is not valid")


def parse_topic_first_starts(text: str) -> tuple[TopicFirstStart, ...]:
    """Parse `audit=latest, pay-.*=2026-01-31T00:00:00Z`: patterns for whole topic names, in the order they are tried.

    Raises:
        ValueError: a member is not such a pair; the message completes "must be".
    """
    found = []
    for member in text.split(","):
        if not member.strip():
            continue
        pattern, sign, start_text = (part.strip() for part in member.partition("="))
        start = parse_first_start(start_text)
        if not (sign and pattern) or start is None:
            raise ValueError(f"a list of pattern=start such as audit=latest; {member.strip()!r} is not valid")
        try:
            compile_java(pattern)
        except ValueError as error:
            raise ValueError(f"a list whose patterns are Java regexes; {error}") from error
        found.append(TopicFirstStart(pattern=pattern, start=start))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class FirstStarts:
    """The first starts of one flow's topics."""

    default: FirstStart = EARLIEST
    #: Tried in this order against the whole name of the source topic.
    topics: tuple[tuple[BoundedPattern, FirstStart], ...] = ()

    def of(self, topic: str) -> FirstStart:
        """Return where a partition of this source topic begins if it has no position."""
        return next((start for pattern, start in self.topics if pattern.fullmatch(topic)), self.default)


def first_starts(flow: FlowConfig) -> FirstStarts:
    """Return the rules of a flow; without own ones, `auto.offset.reset` of the source's consumer applies.

    Raises:
        ConfigurationError: `auto.offset.reset` applies and has a value that a batch cannot apply.
    """
    return FirstStarts(
        default=flow.first_start or _consumer_reset(flow),
        topics=tuple((compile_java(rule.pattern), rule.start) for rule in flow.topic_first_starts),
    )


def _consumer_reset(flow: FlowConfig) -> FirstStart:
    reset = flow.clients.data_consumer.properties.get(OFFSET_RESET, "earliest")
    try:
        return parse_offset_reset(reset)
    except ValueError as error:
        raise ConfigurationError(
            f"{OFFSET_RESET} is {reset!r}; it must be {error}.",
            where=Where(flow=str(flow.flow)),
            action=f"Set {flow.flow.source}.consumer.{OFFSET_RESET} to earliest or latest, or mirror.first.start.",
        ) from error
