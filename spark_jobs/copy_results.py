"""The classes of a copy's results, one of each module, for `sealing.seal`. Only drivers import this."""

from __future__ import annotations

from mirror_lib.offsets.runs import OffsetRun
from mirror_lib.planning.model import PartitionResult
from mirror_lib.records.last_records import LastRecord
from mirror_lib.records.transactions import TransactionCount
from mirror_lib.topology.names import TopicPartition

COPY_RESULTS = (PartitionResult, OffsetRun, LastRecord, TransactionCount, TopicPartition)
