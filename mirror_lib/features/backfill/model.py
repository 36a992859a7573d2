"""The backfill: a bounded copy next to a flow, with a name by which it is repeated."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from mirror_lib.config.model import FirstStart
from mirror_lib.errors import ConfigurationError
from mirror_lib.planning.backfills import FROM_CUTOVER, backfill_id
from mirror_lib.topology.names import FlowId, TopicPartition

_NAME = re.compile(r"[a-zA-Z0-9._-]{1,80}")
_DERIVED_LENGTH = 12


@dataclass(frozen=True, slots=True)
class BackfillRequest:
    """The request for a backfill. The same request is the same backfill, unless it is given another name."""

    flow: FlowId
    #: Java regexes of source topics, within the topics that the flow selects.
    topics: tuple[str, ...]
    #: The first offset.
    begin: FirstStart
    #: The offset after the last one to copy.
    end: FirstStart
    #: The target topic, for a single source topic.
    into: str | None = None
    #: Suffix of the name that each topic has on the target.
    into_suffix: str | None = None
    #: Only records that were written after a cutover (`late_writes`), instead of all records from `begin`.
    after_cutover: bool = False

    @property
    def derived_name(self) -> str:
        """A name that depends only on the request."""
        content = json.dumps({**self.to_dict(), "topics": sorted(set(self.topics))}, sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:_DERIVED_LENGTH]

    @property
    def takes_nothing(self) -> bool:
        """True if the two ends show that the range is empty in any log."""
        begin, end = self.begin, self.end
        if begin.reset == "latest" or end.reset == "earliest":
            return True
        pairs = ((begin.offset, end.offset), (begin.timestamp_ms, end.timestamp_ms))
        return any(first is not None and last is not None and first >= last for first, last in pairs)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the ledger and `--json`."""
        return {
            "flow": str(self.flow),
            "topics": list(self.topics),
            "from": self.begins,
            "to": shown_bound(self.end),
            "into": self.into,
            "into_suffix": self.into_suffix,
        }

    @property
    def begins(self) -> str:
        """The beginning in the syntax of the option."""
        return FROM_CUTOVER if self.after_cutover else shown_bound(self.begin)

    def __str__(self) -> str:
        where = self.into or (f"*{self.into_suffix}" if self.into_suffix else "the flow's own topics")
        return f"{', '.join(self.topics)} from {self.begins} to {shown_bound(self.end)} into {where}"


def shown_bound(bound: FirstStart) -> str:
    """A bound in the syntax of the option."""
    if bound.reset is not None:
        return bound.reset
    if bound.offset is not None:
        return f"offset {bound.offset}"
    at = datetime.fromtimestamp((bound.timestamp_ms or 0) / 1000, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True, slots=True)
class BackfillRange:
    """One partition's share: copy [first, following) of the source."""

    source: TopicPartition
    target: TopicPartition
    topic_id: str | None
    first: int
    following: int

    @property
    def offsets(self) -> int:
        """Number of offsets: an upper bound for the number of records."""
        return self.following - self.first


@dataclass(frozen=True, slots=True)
class Backfill:
    """A request with its topics, times and ends resolved once, for all its runs."""

    name: str
    request: BackfillRequest
    #: True if it writes to the flow's own target topics.
    into_live: bool
    #: None of them is empty.
    ranges: tuple[BackfillRange, ...]
    created_at: datetime

    @property
    def name_by_ranges(self) -> str:
        """A name that depends on the request and on the offsets that it resolves to today."""
        ranges = [[*each.source, each.first, each.following] for each in self.ranges]
        content = json.dumps([self.request.to_dict(), ranges], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:_DERIVED_LENGTH]

    @property
    def flow(self) -> FlowId:
        """The id that names its lock, its writers and its ledger rows."""
        return backfill_id(self.request.flow, self.name)

    @property
    def connector(self) -> str:
        """The connector name of its positions in the flow's position topic."""
        return f"MirrorBackfill-{self.name}"

    @property
    def targets(self) -> dict[str, str]:
        """Target topics by source topic."""
        return {each.source.topic: each.target.topic for each in self.ranges}

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the ledger and `--json`."""
        return {
            "name": self.name,
            "request": self.request.to_dict(),
            "into_live": self.into_live,
            "created_at": self.created_at.isoformat(),
            "ranges": [
                {
                    "topic": each.source.topic,
                    "partition": each.source.partition,
                    "target_topic": each.target.topic,
                    "topic_id": each.topic_id,
                    "from": each.first,
                    "to": each.following,
                }
                for each in self.ranges
            ],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], request: BackfillRequest) -> Backfill:
        """The inverse of `to_dict`, with the request already read."""
        return cls(
            name=data["name"],
            request=request,
            into_live=data["into_live"],
            created_at=datetime.fromisoformat(data["created_at"]),
            ranges=tuple(
                BackfillRange(
                    TopicPartition(each["topic"], each["partition"]),
                    TopicPartition(each["target_topic"], each["partition"]),
                    each["topic_id"],
                    each["from"],
                    each["to"],
                )
                for each in data["ranges"]
            ),
        )


def checked_name(name: str) -> str:
    """Return the name.

    Raises:
        ConfigurationError: the name is invalid. It becomes part of other names.
    """
    if not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"invalid backfill name {name!r}.", action="Use up to 80 letters, digits, '.', '_' and '-'."
        )
    return name
