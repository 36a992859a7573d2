"""Records of aborted and of open transactions that a flow of all records has copied: rules and messages.

MirrorMaker 2 reads all records by default, and they become ordinary records on the target. Readers of committed records
then see more there than on the source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from mirror_lib.counted import counted
from mirror_lib.ledger.offset_rows import TransactionCountRow
from mirror_lib.ledger.store import Ledger
from mirror_lib.planning.model import CopiedTransactions
from mirror_lib.records.transactions import OpenTransaction, TransactionCount
from mirror_lib.topology.names import FlowId, TopicPartition

_NAMED = 3


def count_row(flow: FlowId, source: TopicPartition, copy: str | None, count: TransactionCount) -> TransactionCountRow:
    """The ledger's row of a count."""
    return TransactionCountRow(
        flow=str(flow),
        topic=source.topic,
        partition=source.partition,
        copy=copy,
        counted_to=count.counted_to,
        aborted=count.aborted,
        undecided=count.undecided,
        uncounted=count.uncounted,
        open=tuple(tuple(each) for each in count.open),
    )


def count_of(row: TransactionCountRow) -> TransactionCount:
    """The count in a row."""
    return TransactionCount(
        counted_to=row.counted_to,
        aborted=row.aborted,
        open=tuple(OpenTransaction(*each) for each in row.open),
        uncounted=row.uncounted,
    )


def copied_transactions(
    ledger: Ledger | None, flow: FlowId, selects: Callable[[str], bool] = lambda _: True
) -> tuple[CopiedTransactions, ...]:
    """What the last runs have counted, by topic.

    Args:
        selects: whether a topic counts. One that was deleted at the source still has its records on the target.
    """
    rows = () if ledger is None else ledger.transaction_counts(str(flow))
    return by_topic(row for row in rows if selects(row.topic))


def by_topic(rows: Iterable[TransactionCountRow]) -> tuple[CopiedTransactions, ...]:
    """Rows of partitions, added up."""
    topics: dict[str, list[TransactionCountRow]] = {}
    for row in rows:
        if row.aborted or row.undecided or row.uncounted:
            topics.setdefault(row.topic, []).append(row)
    return tuple(
        CopiedTransactions(
            topic=topic,
            aborted=sum(row.aborted for row in found),
            undecided=sum(row.undecided for row in found),
            uncounted=sum(row.uncounted for row in found),
            open=tuple(
                (TopicPartition(topic, row.partition), producer, first, records)
                for row in found
                for producer, first, records in row.open
            ),
        )
        for topic, found in sorted(topics.items())
    )


def aborted_notes(
    flow: FlowId, copied: Sequence[CopiedTransactions], *, by_run: Iterable[tuple[str, int]] | None = None
) -> Iterator[str]:
    """Sentences about them, for a plan or the report of a run.

    Args:
        copied: all that is on the target.
        by_run: topic and records that a run has found to be aborted; None for a plan.
    """
    aborted = [(each.topic, each.aborted) for each in copied if each.aborted] if by_run is None else list(by_run)
    if total := sum(records for _, records in aborted):
        at_least = "At least " if any(each.uncounted for each in copied) else ""
        in_all = sum(each.aborted for each in copied)
        everything = f" The target has {in_all:,} in all." if in_all > total else ""
        yield (
            f"{at_least}{counted(total, 'record')} of aborted transactions {'is' if total == 1 else 'are'} on the "
            f"target as ordinary records ({_places(aborted)}): read_committed consumers see them there, but not on "
            f"the source.{everything} "
            f"{_WAYS.format(source=flow.source)}"
        )
    if total := sum(each.undecided for each in copied):
        first = [
            f"{place} from offset {offset}, producer id {producer}"
            for each in copied
            for place, producer, offset, _ in each.open
        ]
        more = f"; and {len(first) - _NAMED:,} more" if len(first) > _NAMED else ""
        yield (
            f"{counted(total, 'record')} of open transactions {'is' if total == 1 else 'are'} on the target as "
            f"ordinary records ({'; '.join(first[:_NAMED])}{more}). If the transactions are aborted, they stay there."
        )


_WAYS = (
    "To skip further ones, set `{source}.consumer.isolation.level = read_committed`; to remove these, then delete "
    "the target topic and copy it again (`mirror gaps recopy`)."
)


def _places(found: Sequence[tuple[str, int]]) -> str:
    most = sorted(found, key=lambda each: (-each[1], each[0]))
    more = f", and {len(most) - _NAMED:,} more topics" if len(most) > _NAMED else ""
    return ", ".join(f"{topic}: {records:,}" for topic, records in most[:_NAMED]) + more
