"""The schemas that a sample of records names, and their state on the target, as values. Pure.

What a run does with an id decides what the target needs: if a transform decodes a side by the registry, ids in front of
the bytes are rewritten, so the schema must exist; otherwise bytes are unchanged, so the same id must have the same
schema.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from typing import Any, NamedTuple
from uuid import UUID

from mirror_lib.features.transforms.model import DataFormat, TransformChain
from mirror_lib.features.transforms.preview.preview import SourceRecord
from mirror_lib.features.transforms.schemas.identities import Identity, Verdict
from mirror_lib.features.transforms.schemas.preflight import subject_of_topic
from mirror_lib.features.transforms.schemas.wire import Place, find_frame

#: Parts of a record that may name a schema.
SIDES = ("key", "value")
#: Number of ids shown as examples of a side without schemas.
_EXAMPLES = 3


class SchemaUse(NamedTuple):
    """How a key or value names its schema."""

    #: An id of the source's registry, or a GUID, which is the same in all registries.
    schema: int | UUID
    place: Place

    @property
    def is_read(self) -> bool:
        """True if transforms can decode by it: they support only ids in front of the bytes."""
        return isinstance(self.schema, int) and self.place is Place.PREFIX

    def __str__(self) -> str:
        kind = "GUID" if isinstance(self.schema, UUID) else "id"
        return f"{kind} {self.schema}{' in a header' if self.place is Place.HEADER else ''}"


def used_schemas(records: Iterable[SourceRecord], side: str) -> Counter[SchemaUse]:
    """Count the records that name each schema in their keys or values.

    Args:
        side: `key` or `value`.
    """
    found: Counter[SchemaUse] = Counter()
    for record in records:
        named = [(name, content) for name, content in record.headers if name is not None]
        is_key = side == "key"
        frame = find_frame(record.key if is_key else record.value, named, key=is_key)
        if frame is not None:
            found[SchemaUse(frame.schema, frame.place)] += 1
    return found


def decoded_formats(chain: TransformChain, side: str) -> tuple[DataFormat, ...]:
    """Return the formats by which a side is decoded with the registry; if none, its bytes are unchanged."""
    formats = ((each.decode.key if side == "key" else each.decode.value).format for each in chain.transforms)
    return tuple(dict.fromkeys(each for each in formats if each.needs_registry))


def is_written(chain: TransformChain, side: str) -> bool:
    """Return True if a transform may set a side that it decodes: it is then written by the latest version of its
    subject.
    """
    return any(
        (each.function is not None or side in each.sets)
        and (each.decode.key if side == "key" else each.decode.value).format.needs_registry
        for each in chain.transforms
    )


@dataclass(frozen=True, slots=True)
class SideUses:
    """The schemas that one side of the records of one topic names.

    Attributes:
        topic: of the source.
        remote_topic: its name on the target.
        side: `key` or `value`.
        is_decoded: True if a transform decodes it by the registry, so that ids become those of the target.
        records: how many name each schema; 0 for one that transforms write by and that no record of the sample names.
    """

    topic: str
    remote_topic: str
    side: str
    is_decoded: bool
    records: Mapping[SchemaUse, int]

    @property
    def subject(self) -> str:
        """Subject on the source."""
        return subject_of_topic(self.topic, key=self.side == "key")

    @property
    def remote_subject(self) -> str:
        """Subject on the target, which a run uses instead of `subject`."""
        return subject_of_topic(self.remote_topic, key=self.side == "key")

    def remote_name(self, subject: str) -> str:
        """Return the target's name of a source subject; only the topic's own subjects are renamed."""
        return self.remote_subject if subject == self.subject else subject

    @property
    def schemas(self) -> tuple[int | UUID, ...]:
        """The schemas to look up in the registries, most frequent first."""
        counts: Counter[int | UUID] = Counter()
        for use, count in self.records.items():
            if use.is_read or not self.is_decoded:
                counts[use.schema] += count
        return tuple(schema for schema, _ in counts.most_common())

    @property
    def ids(self) -> tuple[int, ...]:
        """The ids among them."""
        return tuple(each for each in self.schemas if isinstance(each, int))

    @property
    def guids(self) -> tuple[UUID, ...]:
        """The GUIDs among them."""
        return tuple(each for each in self.schemas if isinstance(each, UUID))


class Outcome(StrEnum):
    """The outcome for a schema's id or GUID on the target."""

    #: It has the same schema.
    SAME = "same"
    #: A run rewrites it to the target's id of the same schema.
    REWRITTEN = "rewritten"
    #: The target does not have the schema.
    MISSING = "missing"
    #: The target has the schema with another id, and the side's bytes are kept.
    NOT_REWRITTEN = "not-rewritten"
    #: The source's registry does not know it either.
    UNKNOWN = "unknown"
    #: Transforms decode this side, and cannot by such a name.
    NOT_READ = "not-read"


@dataclass(frozen=True, slots=True)
class Finding:
    """One schema that a side of a topic's records names, and its outcome.

    Attributes:
        topic: of the source.
        side: `key` or `value`.
        records: of the sample; 0 if only transforms write by it.
        target_id: of the same schema; None if it does not exist, and for GUIDs.
        subject: of the target, which has the schema or is to have it.
        is_taken: True if the target uses the id for another schema.
    """

    topic: str
    side: str
    use: SchemaUse
    records: int
    outcome: Outcome
    target_id: int | None = None
    subject: str | None = None
    is_taken: bool = False

    @property
    def resolves(self) -> bool:
        """True if readers of the record on the target find its schema."""
        return self.outcome in (Outcome.SAME, Outcome.REWRITTEN)

    def __str__(self) -> str:
        seen = (
            f"in {_plural(self.records, 'record')}"
            if self.records
            else "the latest version, used for records that transforms write"
        )
        return f"{self.side} {self.use} ({seen}): {self._sentence()}"

    def _sentence(self) -> str:
        taken = "; the id belongs to another schema there" if self.is_taken else ""
        match self.outcome:
            case Outcome.SAME:
                return "the same on the target"
            case Outcome.REWRITTEN:
                return f"rewritten to {self.target_id} ({self.subject})"
            case Outcome.MISSING:
                return f"missing on the target, to be registered under {self.subject}{taken}"
            case Outcome.NOT_REWRITTEN:
                return (
                    f"has the id {self.target_id} on the target ({self.subject}), but the id is not rewritten, "
                    f"because no transform decodes this side{taken}"
                )
            case Outcome.UNKNOWN:
                return "unknown to the source's registry too"
            case Outcome.NOT_READ:
                return "transforms cannot decode it: they read ids only at the start of the bytes"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json` output."""
        schema = self.use.schema
        return {
            "topic": self.topic,
            "side": self.side,
            "id": schema if isinstance(schema, int) else None,
            "guid": str(schema) if isinstance(schema, UUID) else None,
            "place": self.use.place.value,
            "records": self.records,
            "outcome": self.outcome.value,
            "resolves": self.resolves,
            "target_id": self.target_id,
            "subject": self.subject,
            "id_is_taken": self.is_taken,
        }


def finding_of_id(uses: SideUses, use: SchemaUse, identity: Identity | None) -> Finding:
    """Return the outcome for an id.

    Args:
        identity: on the target; None if the source's registry does not know it.
    """
    if identity is None:
        outcome, target_id, subject = Outcome.UNKNOWN, None, None
    else:
        target_id, subject = identity.target_id, identity.subject
        if identity.verdict is Verdict.SAME:
            outcome = Outcome.SAME
        elif target_id is None:
            outcome = Outcome.MISSING
        else:
            outcome = Outcome.REWRITTEN if uses.is_decoded else Outcome.NOT_REWRITTEN
    taken = identity is not None and identity.verdict is Verdict.CONFLICT
    return Finding(uses.topic, uses.side, use, uses.records[use], outcome, target_id, subject, taken)


def finding_of_guid(uses: SideUses, use: SchemaUse, *, at_source: bool, at_target: bool) -> Finding:
    """Return the outcome for a GUID, by the registries that know it."""
    if at_target:
        outcome, subject = Outcome.SAME, None
    elif at_source:
        outcome, subject = Outcome.MISSING, uses.remote_subject
    else:
        outcome, subject = Outcome.UNKNOWN, None
    return Finding(uses.topic, uses.side, use, uses.records[use], outcome, subject=subject)


def finding_of_unread(uses: SideUses, use: SchemaUse) -> Finding:
    """Return the outcome for a name that transforms, which decode this side, cannot use."""
    return Finding(uses.topic, uses.side, use, uses.records[use], Outcome.NOT_READ)


@dataclass(frozen=True, slots=True)
class Lookalike:
    """A side that seems to name schemas but may have none: it is not decoded, and the source's registry knows none.

    Numbers look like ids: a serialized long from 2^24 on begins with a zero, and the next four bytes are an id.
    """

    topic: str
    side: str
    examples: tuple[str, ...]
    records: int

    @classmethod
    def of(cls, uses: SideUses) -> Lookalike:
        """Return everything that a side seems to name."""
        examples = tuple(map(str, uses.schemas[:_EXAMPLES]))
        return cls(uses.topic, uses.side, examples, sum(uses.records.values()))

    def __str__(self) -> str:
        return (
            f"{self.side}s with possible schema ids ({_plural(self.records, 'record')}, such as "
            f"{', '.join(self.examples)}): the source's registry does not know the most frequent ones, so they are "
            "probably not schema ids"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json` output."""
        return {"topic": self.topic, "side": self.side, "examples": list(self.examples), "records": self.records}


@dataclass(frozen=True, slots=True)
class TopicSample:
    """The size of the sample of a topic.

    Attributes:
        records: in the sample.
        held: offsets of the topic, an upper bound of its records.
        unreadable: records, and damaged batches, that could not be read.
    """

    topic: str
    records: int
    held: int
    unreadable: int = 0

    def __str__(self) -> str:
        if not self.held:
            return "empty"
        lost = f", {self.unreadable:,} more could not be read" if self.unreadable else ""
        return f"{self.records:,} of at most {_plural(self.held, 'record')} sampled{lost}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json` output."""
        return {"topic": self.topic, "records": self.records, "held": self.held, "unreadable": self.unreadable}


@dataclass(frozen=True, slots=True)
class SchemaPreflight:
    """The result of a sample of a flow's records about the schemas that its target must have."""

    samples: tuple[TopicSample, ...]
    findings: tuple[Finding, ...]
    lookalikes: tuple[Lookalike, ...] = ()

    @property
    def unresolved_ids(self) -> tuple[Finding, ...]:
        """Ids without a schema on the target, or with another one."""
        return tuple(each for each in self.findings if not each.resolves)

    @property
    def knows_nothing(self) -> bool:
        """True if the source's registry knows nothing that was found: it may not be the producers' registry."""
        strange = {Outcome.UNKNOWN, Outcome.NOT_READ}
        if any(each.outcome not in strange for each in self.findings):
            return False
        return bool(self.lookalikes) or any(each.outcome is Outcome.UNKNOWN for each in self.findings)

    @property
    def in_order(self) -> bool:
        """True if everything found resolves. Lookalikes count only if the source knows nothing at all."""
        return not self.unresolved_ids and not self.knows_nothing

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json` output."""
        return {
            "in_order": self.in_order,
            "topics": [each.to_dict() for each in self.samples],
            "schemas": [each.to_dict() for each in self.findings],
            "lookalikes": [each.to_dict() for each in self.lookalikes],
        }

    def lines(self) -> Iterator[str]:
        """Yield lines for the console: topics with schemas, unresolved ones first; without `summary`."""
        samples = {each.topic: each for each in self.samples}
        topics_by_line: dict[str, list[str]] = {}
        for topic, found in groupby(sorted(self.findings, key=lambda each: each.topic), lambda each: each.topic):
            topics_by_line[topic] = list(map(str, sorted(found, key=lambda each: each.resolves)))
        for lookalike in self.lookalikes:
            topics_by_line.setdefault(lookalike.topic, []).append(str(lookalike))
        bad = {each.topic for each in self.unresolved_ids}
        for topic in sorted(topics_by_line, key=lambda each: (each not in bad, each)):
            yield f"{topic}: {samples[topic]}"
            yield from (f"  {line}" for line in topics_by_line[topic])

    def summary(self) -> Iterator[str]:
        """Yield the size of the sample, and the result."""
        records, held = (sum(getattr(each, name) for each in self.samples) for name in ("records", "held"))
        yield (
            f"Sample: {records:,} of at most {_plural(held, 'record')} of {_plural(len(self.samples), 'topic')}, "
            "the oldest and the newest of all partitions. Other records may use other schemas."
        )
        if self.knows_nothing:
            yield "The source's registry knows none of the schema ids. Is it the registry of the producers?"
        if not self.findings:
            yield "No schemas were found."
            return
        outcomes = Counter(each.outcome for each in self.unresolved_ids)
        bad = "".join(f", {outcomes[each]:,} {_SUMMED[each]}" for each in _SUMMED if outcomes[each])
        good = len(self.findings) - len(self.unresolved_ids)
        yield f"Schemas in use: {len(self.findings):,}. Correct on the target: {good:,}{bad}."


_SUMMED: Mapping[Outcome, str] = {
    Outcome.MISSING: "missing",
    Outcome.NOT_REWRITTEN: "with another id that is not rewritten",
    Outcome.UNKNOWN: "unknown on the source too",
    Outcome.NOT_READ: "that transforms cannot decode",
}


def _plural(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
