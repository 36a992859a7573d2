"""The rows of a chain for the records of a job: copies write them, and verifications make them again."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from mirror_lib.features.transforms.model import TransformChain
from spark_jobs.transforms.frame import frame_of
from spark_jobs.transforms.row_source import ReadRows, read_frame
from spark_jobs.transforms.smt_row_tasks import READ_THROUGH_SMTS_DDL, read_through_smts, sealed_smts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


#: Required settings of the session.
_SESSION = (
    # Expressions must mean the same on every machine, and fail rather than return null if they cannot be computed.
    ("spark.sql.session.timeZone", "UTC"),
    ("spark.sql.ansi.enabled", "true"),
    # For each row Spark adds up the size of all rows of its batch (`ArrowWriter.sizeInBytes`), so large batches cost
    # more than they save: with the default of 10,000 rows, three quarters of a copy's processor time.
    ("spark.sql.execution.arrow.maxRecordsPerBatch", "500"),
    # A worker holds a whole batch, and 500 rows may be large. Older versions of Spark ignore this setting.
    ("spark.sql.execution.arrow.maxBytesPerBatch", str(4 * 1024 * 1024)),
)


class ChainRows:
    """Reads jobs through one chain: Connect's transforms run while rows are read, all others in Spark after that."""

    def __init__(self, spark: SparkSession, chain: TransformChain, targets: Mapping[str, str], read: ReadRows) -> None:
        """Args:
        chain: chain of all records of the jobs.
        targets: the remote topic of each source topic.
        read: takes the stamp, the sealed job, and the number of a bin, and returns its rows; workers import it.
        """
        for name, value in _SESSION:
            spark.conf.set(name, value)
        self._spark = spark
        self._chain = chain
        self._targets = targets
        self._read = read
        #: Connect's transforms of the chain; None if it has none.
        self.smts = None if chain.smt is None else sealed_smts(chain.smt, targets)

    def transform(self, sealed: tuple[str, bytes], bins: int) -> DataFrame:
        """The transformed records of a job, as returned by `transform_frame.frame_of`.

        Args:
            sealed: the stamp and the job.
            bins: its number of bins.
        """
        if self.smts is None:
            source = read_frame(self._spark, sealed, bins, self._read)
            return frame_of(source, self._chain, target_topic_of=self._targets)
        read = partial(read_through_smts, self._read, self.smts)
        source = read_frame(self._spark, sealed, bins, read, READ_THROUGH_SMTS_DDL)
        return frame_of(source, self._chain, target_topic_of=self._targets, through_smts=True)
