"""`RegexRouter` and `TimestampRouter`: another topic for the record. The partition is unchanged."""

from __future__ import annotations

from functools import lru_cache

from mirror_lib.features.transforms.smt import model
from mirror_lib.features.transforms.smt.record import SmtRecord
from mirror_lib.features.transforms.smt.values.data import DataError
from mirror_lib.topology.bounded_pattern import BoundedPattern
from mirror_lib.topology.java_regex import Replacement, compile_java, compile_replacement


def regex_router(setting: model.RegexRouter, record: SmtRecord) -> SmtRecord:
    """Return the record under the name of `renamed_by_regex`."""
    topic = renamed_by_regex(setting, record.topic)
    return record if topic == record.topic else record.with_topic(topic)


def renamed_by_regex(setting: model.RegexRouter, topic: str) -> str:
    """Rename by a regex that must match the whole name, while its first match, as in Java, may replace less.

    `a|ab` matches the topic `ab` (`Matcher.matches`), and `replaceFirst` then replaces the `a` alone.
    """
    return _rename(setting.regex, setting.replacement, topic)


def timestamp_router(setting: model.TimestampRouter, record: SmtRecord) -> SmtRecord:
    """Return the record under the name of `renamed_by_time`.

    Raises:
        DataError: the record has no timestamp, or one that Java writes by another calendar.
    """
    if record.timestamp is None:
        raise DataError("Timestamp missing on record")
    return record.with_topic(renamed_by_time(setting, record.topic, record.timestamp))


def renamed_by_time(setting: model.TimestampRouter, topic: str, milliseconds: int) -> str:
    """Replace `${topic}` and `${timestamp}` of the format, the second also if it comes from the topic's name.

    Raises:
        DataError: Java writes the time by another calendar.
    """
    moment = setting.timestamp_format.format(milliseconds)
    return setting.topic_format.replace("${topic}", topic).replace("${timestamp}", moment)


# Records of one topic are consecutive.
@lru_cache(maxsize=1024)
def _rename(regex: str, replacement: str, topic: str) -> str:
    pattern, compiled = _compile(regex, replacement)
    return topic if pattern.fullmatch(topic) is None else pattern.replace_first(compiled, topic)


@lru_cache(maxsize=256)
def _compile(regex: str, replacement: str) -> tuple[BoundedPattern, Replacement]:
    pattern = compile_java(regex)
    return pattern, compile_replacement(replacement, pattern)
