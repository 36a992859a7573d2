"""Translated groups, and what a consumer of each reads then on the target.

The consumer is librdkafka and shares no code with the product. It starts at the group's offsets, and without an offset
where its `auto.offset.reset` says: `latest` for one group, `earliest` for the other. A partition is either named by a
reason, or the consumer reads next what it would read next on the source.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tools.model.expected import check_group, check_not_beyond, check_reader
from tools.model.operations import Operations
from tools.model.steps import COMPACTED_TOPIC, GROUPS, TOPICS

_SKIPS = "skips-records"
_RESETS = dict(zip(GROUPS, ("latest", "earliest"), strict=True))
#: Group, topic and partition.
_Row = tuple[object, object, object]


class Groups(Operations):
    """The rule that translates groups, and the invariants of their consumers."""

    def _do_groups(self) -> None:
        before = {group: self._target.committed(group) for group in map(self._topic, GROUPS)}
        said = self._done("groups", "apply")
        self._look()
        self._read_sources()
        rows = {(row["group"], row["topic"], row["partition"]): row for row in said.document.get("rows") or []}
        skip = {key for key, row in rows.items() if row.get("reason") == _SKIPS}
        for group, offsets in before.items():
            self._check_commits(group, offsets, skip)
        if said.exit_code == 0 and self._translation == "exact":
            named = {key for key, row in rows.items() if row.get("reason")}
            chosen = [topic for topic in TOPICS if self._is_selected(topic) and topic not in self._moved]
            self._check_readers(chosen, named)

    def _check_commits(self, group: str, before: Mapping[tuple[str, int], int], named: Collection[_Row]) -> None:
        """Check offsets that a command has committed, except those with which it has named skipped records."""
        here = self._source.committed(group)
        for (name, number), there in self._target.committed(group).items():
            for topic in TOPICS:
                read = here.get((self._topic(topic), number))
                place = topic, number
                # Restored, or another topic than the one with the copies, with which an operator has continued.
                is_odd = self._target_restored or place in self._decided
                is_named = is_odd and (group, self._topic(topic), number) in named
                if is_named or place in self._accepted_unknown:
                    continue
                if name == self._remote(topic) and read is not None and there != before.get((name, number)):
                    history, copy = self._histories[place], self._copy(place)
                    what = f"{group} on {place}"
                    check_not_beyond(what, history, copy, read, there, committed=self._committed)

    def _check_readers(self, topics: Sequence[str], named: Collection[_Row] = (), *, continues: bool = False) -> None:
        """Check the consumers of groups in all partitions of each topic in which they have an offset.

        Args:
            topics: the topics to check.
            named: partitions about which a command has given a reason.
            continues: the groups came home: one without an offset on the source may continue at its offset on the
                target, and one without an offset there has all of the copy unread at the source.
        """
        for group, reset in _RESETS.items():
            here = self._source.committed(self._topic(group))
            known = [topic for topic in topics if any(name == self._topic(topic) for name, _ in here)]
            on_source = {(topic, each) for topic in known for each in self._source.partitions(self._topic(topic))}
            on_target = {(topic, each) for topic in known for each in self._target.partitions(self._remote(topic))}
            places = {(self._remote(topic), number): (topic, number) for topic, number in on_target}
            read = self._target.read_as(self._topic(group), places, reset)
            by_place = {places[remote]: found for remote, found in read.items()}
            if COMPACTED_TOPIC in known:
                self._look()
            there = {
                places[each]: at for each, at in self._target.committed(self._topic(group)).items() if each in places
            }
            for place in sorted(on_source | on_target):
                key = self._topic(group), self._topic(place[0]), place[1]
                copy = self._copy(place)
                is_kept = continues and key[1:] not in here and there.get(place, 0) > copy.start
                if continues and place in on_source and key[1:] in here and place not in there:
                    # It has read nothing there, and nobody has committed anything for it: all is unread at the source.
                    history, offset = self._histories[place], here[key[1:]]
                    what = f"{group} on {place}"
                    check_group(what, history, copy, offset, copy.start, self._strangers, committed=self._committed)
                elif key not in named and not is_kept:
                    check_reader(
                        f"{group} on {place}",
                        self._histories[place] if place in on_source else None,
                        copy,
                        here.get(key[1:]),
                        there.get(place),
                        by_place.get(place, ()),
                        self._strangers,
                        committed=self._committed,
                        undecided=self._undecided,
                    )
