"""An audit of two logs without brokers: what partitions of records would be found to be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from mirror_lib.features.audit.account import Account
from mirror_lib.features.audit.alignment import MOST_UNMATCHED, Alignment, Need
from mirror_lib.features.audit.by_key import Chosen, Digests, compare_chosen, differing
from mirror_lib.features.audit.findings import Answer, Facts, Finding, Occurrence, Unpaired
from mirror_lib.features.audit.unmatched import content_of
from mirror_lib.features.transforms.arrow.record_blocks import RecordBlock
from mirror_lib.features.verify.compare.record_columns import Columns, columns
from mirror_lib.features.verify.compare.side import Side
from mirror_lib.records.spans import Span
from tests.support.records.logs import blocks, log, spans
from tests.support.records.record_batches import SourceRecord

_Spans = Sequence[Span | RecordBlock]


def aligned(source: bytes, target: bytes, *, at_once: int = 3, merged: bool = False, gathered: bool = False) -> Account:
    """The account of a walk that is fed so many spans at a time."""
    return walked(source, target, at_once=at_once, merged=merged, gathered=gathered).account


def walked(
    source: bytes,
    target: bytes,
    *,
    at_once: int = 3,
    marks: tuple[Iterable[int], Iterable[int]] = ((), ()),
    most_unmatched: int = MOST_UNMATCHED,
    merged: bool = False,
    gathered: bool = False,
    same_offsets: bool = False,
) -> Alignment:
    """A whole walk; `gathered` makes blocks of small batches, as an audit reads logs."""
    read = blocks if gathered else spans
    logs: dict[bool, _Spans] = {True: read(source), False: read(target)}
    ends = ((each[0].first, each[-1].next_offset) if each else (0, 0) for each in logs.values())
    walk = Alignment(*ends, marks=marks, most_unmatched=most_unmatched, merged=merged, same_offsets=same_offsets)
    for need in walk.walk():
        if need is Need.MORE_SOURCE:
            walk.source_ended = True
        elif need is Need.MORE_TARGET:
            walk.target_ended = True
        elif need in (Need.SOURCE, Need.TARGET):
            of_source = need is Need.SOURCE
            _feed(walk.source if of_source else walk.target, logs[of_source], at_once)
    return walk


def _feed(side: Side, whole: _Spans, at_once: int) -> None:
    part = [each for each in whole if each.next_offset > side.fed_to][:at_once]
    assert part, "nothing is asked for beyond the end"
    side.feed(part, part[-1].next_offset)


def audited(
    source: Sequence[SourceRecord], target: Sequence[SourceRecord], *, at_once: int = 3, size: int = 7, **facts: int
) -> list[Finding]:
    """What an audit of two partitions finds, with everything that it looks up in the logs."""
    here, there = log(source, [size] * len(source)), log(target, [size + 2] * len(target))
    account = aligned(here, there, at_once=at_once, merged=bool(facts.get("merged")))
    known = Facts(**{"judged_end": source[-1].offset + 1 if source else 0, **facts})
    unpaired = Unpaired(account.only_source, account.only_target, known, account)
    question, answer = unpaired.question(), Answer()
    for of_source, whole in ((True, here), (False, there)):
        for span in spans(whole):
            found = columns(span)
            for offset, time, tail in zip(found.offsets, found.times, found.tails, strict=True):
                content = content_of(tail)
                if of_source and content in question.contents:
                    answer.add(content, time, Occurrence(offset))
                keys = answer.source_keys if of_source else answer.target_keys
                if content[0] in (question.source_keys if of_source else question.target_keys):
                    keys[content[0]] = offset
    return unpaired.findings(answer)


def audited_by_key(
    source: Mapping[int, Sequence[SourceRecord]], target: Mapping[int, Sequence[SourceRecord]], *, buckets: int
) -> tuple[int, list[Finding]]:
    """Pairs in order and findings of two topics, each by partition, compared key by key."""
    sides = [
        [(number, _columns(log(each))) for number, each in sorted(side.items()) if each] for side in (source, target)
    ]
    wanted: set[int] = set()
    shares = 2
    for number in range(shares):
        digests = [Digests(buckets, share=(number, shares)) for _ in sides]
        for digest, side in zip(digests, sides, strict=True):
            for partition, found in side:
                digest.add(partition, found)
        wanted |= differing(*digests, share=(number, shares))
    chosen = [Chosen(wanted, buckets * shares) for _ in sides]
    for each, side in zip(chosen, sides, strict=True):
        for number, found in side:
            each.add(number, found)
    ends = {number: found.offsets[-1] + 1 for number, found in sides[0]}
    return compare_chosen(*chosen, Facts(ends))


def _columns(raw: bytes) -> Columns:
    found = [columns(each) for each in spans(raw)]
    return Columns(*([value for each in found for value in each[place]] for place in range(3)))


def renumbered(records: Sequence[SourceRecord], first: int = 0) -> list[SourceRecord]:
    """The same records as a target holds them: in a row."""
    return [replace(each, offset=first + number) for number, each in enumerate(records)]
