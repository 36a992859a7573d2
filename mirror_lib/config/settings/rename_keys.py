"""Names of topics beyond MM2's policies, `mirror.topics.*`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mirror_lib.config.frozen import Frozen, own
from mirror_lib.topology.java_regex import compile_java


def parse_rename_list(text: str) -> Mapping[str, str]:
    """Parse `orders:sales, old:new` as a map from source to target topic.

    Raises:
        ValueError: a member is not a pair, or a source topic appears twice; the message completes "must be".
    """
    pairs: dict[str, str] = {}
    for source, target in _pairs(text):
        if source in pairs:
            raise ValueError(f"a list with each source topic once; {source} is in it twice")
        pairs[source] = target
    return pairs


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for member in text.split(","):
        if not member.strip():
            continue
        source, colon, target = (part.strip() for part in member.partition(":"))
        if not (colon and source and target) or ":" in target:
            raise ValueError(f"a list of source:target pairs such as orders:sales; {member.strip()!r} is not valid")
        yield source, target


def parse_regex(text: str) -> str | None:
    """Return a Java regex; None for an empty text.

    Raises:
        ValueError: it is none; the message completes "must be".
    """
    stripped = text.strip()
    try:
        compile_java(stripped)
    except ValueError as error:
        raise ValueError(f"a Java regex; {error}") from error
    return stripped or None


class Rename(Frozen):
    """Plain configuration for topic names; applied before the replication policy's own rule."""

    #: Target topic by source topic.
    explicit: Mapping[str, str] = own(
        {},
        "Renames single topics: `orders:sales, old:new`. Applied before the regex and the replication policy.",
        name="mirror.topics.rename",
        type="list",
        read=parse_rename_list,
    )
    #: Must match the whole source name; groups serve the replacement.
    pattern: str | None = own(
        None,
        "Renames every topic whose whole name matches this Java regex.",
        name="mirror.topics.rename.regex",
        read=parse_regex,
    )
    replacement: str | None = own(
        None,
        "New name for topics that match `mirror.topics.rename.regex`; `$1` is its first group.",
        name="mirror.topics.rename.replacement",
    )
    merge: bool = own(
        False,
        "Allows several source topics with the same number of partitions to be copied to one target topic.",
        name="mirror.topics.merge.enabled",
    )
