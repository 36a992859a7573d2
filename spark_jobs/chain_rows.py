"""The rows that a chain makes of the records that a job reads: what copies write, and verifications make again."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from mirror_lib.transform import TransformChain
from spark_jobs.row_source import ReadRows, read_frame
from spark_jobs.smt_row_tasks import READ_THROUGH_SMTS_DDL, read_through_smts, sealed_smts
from spark_jobs.transform_frame import frame_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


#: What the session must have, whatever becomes of the rows.
_SESSION = (
    # Expressions must mean the same on every machine, and fail rather than make null of what they cannot compute.
    ("spark.sql.session.timeZone", "UTC"),
    ("spark.sql.ansi.enabled", "true"),
    # For each row Spark adds up what all rows of its batch take (`ArrowWriter.sizeInBytes`), so large batches cost more
    # than they spare: with 10,000 rows, its default, three quarters of a copy's processor time.
    ("spark.sql.execution.arrow.maxRecordsPerBatch", "500"),
    # A worker holds a batch as a whole, and so many rows may be large ones. Older versions of Spark do not know this.
    ("spark.sql.execution.arrow.maxBytesPerBatch", str(4 * 1024 * 1024)),
)


class ChainRows:
    """Reads jobs through one chain: Connect's transforms where the rows are read, all others in Spark behind it."""

    def __init__(self, spark: SparkSession, chain: TransformChain, targets: Mapping[str, str], read: ReadRows) -> None:
        """Args:
        chain: of all records of the jobs.
        targets: the remote topic of each source topic.
        read: given the stamp and the job as sealed, and the number of a bin, its rows; workers import it.
        """
        for name, value in _SESSION:
            spark.conf.set(name, value)
        self._spark = spark
        self._chain = chain
        self._targets = targets
        self._read = read
        #: Connect's transforms of the chain; None where it has none.
        self.smts = None if chain.smt is None else sealed_smts(chain.smt, targets)

    def made(self, sealed: tuple[str, bytes], bins: int) -> DataFrame:
        """What becomes of the records of a job, as `transform_frame.frame_of` gives it.

        Args:
            sealed: the job, with its stamp.
            bins: how many it has.
        """
        if self.smts is None:
            source = read_frame(self._spark, sealed, bins, self._read)
            return frame_of(source, self._chain, target_topic_of=self._targets)
        read = partial(read_through_smts, self._read, self.smts)
        source = read_frame(self._spark, sealed, bins, read, READ_THROUGH_SMTS_DDL)
        return frame_of(source, self._chain, target_topic_of=self._targets, through_smts=True)
