"""The complete check: both sides read from their beginning by new consumers, and compared record by record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from tools.faults.clusters.topics import Topics
from tools.faults.flow_config import INPUT_PREFIX, TARGET_PREFIX
from tools.faults.records.reading import Place, Reader
from tools.faults.records.sequences import Findings, Seen, Stream, compare, input_faults
from tools.faults.results import Complete


def check_everything(
    source: Topics, target: Topics, streams: Iterable[Stream], *, same_offsets: bool = False
) -> Complete:
    """Compare the whole target with the whole source, one partition after the other.

    Args:
        source: topics of the input.
        target: topics of the copy.
        streams: written by the input; each must be complete on the source, up to its end marker.
        same_offsets: records must have the offsets of the source: it has no holes, so both logs have as many.
    """
    producers: dict[Place, list[int]] = defaultdict(list)
    for stream in streams:
        producers[stream.topic, stream.partition].append(stream.producer)
    source_ends, target_ends = _ends(source, ""), _ends(target, TARGET_PREFIX)
    findings = Findings()
    faults: list[str] = []
    source_records = target_records = 0
    with Reader(source.bootstrap_servers) as held, Reader(target.bootstrap_servers, prefix=TARGET_PREFIX) as copied:
        for place in sorted({*producers, *source_ends, *target_ends}):
            originals = _read(held, place, source_ends)
            copies = _read(copied, place, target_ends)
            faults += [f"{place[0]}-{place[1]}: {fault}" for fault in input_faults(originals, producers[place])]
            findings += compare(originals, copies)
            if same_offsets and source_ends.get(place) != target_ends.get(place):
                faults.append(f"{place[0]}-{place[1]}: ends at {source_ends.get(place)} and {target_ends.get(place)}")
            source_records += len(originals)
            target_records += len(copies)
    return Complete(source_records, target_records, findings, tuple(faults))


def _ends(topics: Topics, prefix: str) -> dict[Place, int]:
    ends = topics.ends(topics.partitions(prefix + INPUT_PREFIX))
    return {(topic.removeprefix(prefix), partition): end for (topic, partition), end in ends.items()}


def _read(reader: Reader, place: Place, ends: dict[Place, int]) -> list[Seen]:
    found: list[Seen] = []
    reader.read_new({place: ends.get(place, 0)}, lambda _topic, _partition, seen: found.append(seen))
    return found
