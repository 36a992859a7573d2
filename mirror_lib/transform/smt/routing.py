"""`RegexRouter` and `TimestampRouter`: another topic for the record. The partition stays what it is."""

from __future__ import annotations

import re
from functools import lru_cache

from mirror_lib.topology.java_regex import Replacement, compile_java, compile_replacement
from mirror_lib.transform.smt import model
from mirror_lib.transform.smt.data import DataError
from mirror_lib.transform.smt.record import SmtRecord


def regex_router(setting: model.RegexRouter, record: SmtRecord) -> SmtRecord:
    """The regex must match the whole name, and what its first match replaces may be less than that, as in Java.

    `a|ab` matches the topic `ab` (`Matcher.matches`), and `replaceFirst` then replaces the `a` alone.
    """
    pattern, replacement = _compiled(setting.regex, setting.replacement)
    if pattern.fullmatch(record.topic) is None:
        return record
    topic = pattern.sub(replacement, record.topic, count=1)
    return record._replace(topic=topic)


def timestamp_router(setting: model.TimestampRouter, record: SmtRecord) -> SmtRecord:
    """`${topic}` and `${timestamp}` of the format replaced, the second also where the topic's name brought it in.

    Raises:
        DataError: the record has no timestamp.
    """
    if record.timestamp is None:
        raise DataError("Timestamp missing on record")
    moment = setting.timestamp_format.format(record.timestamp)
    topic = setting.topic_format.replace("${topic}", record.topic).replace("${timestamp}", moment)
    return record._replace(topic=topic)


@lru_cache(maxsize=256)
def _compiled(regex: str, replacement: str) -> tuple[re.Pattern[str], Replacement]:
    pattern = compile_java(regex)
    return pattern, compile_replacement(replacement, pattern)
