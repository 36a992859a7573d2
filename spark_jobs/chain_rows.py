"""The rows that a chain makes of the records that a job reads: what copies write, and verifications make again."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from mirror_lib.transform.model import TransformChain
from spark_jobs.row_source import ReadRows, read_frame
from spark_jobs.smt_row_tasks import READ_THROUGH_SMTS_DDL, read_through_smts, sealed_smts
from spark_jobs.transform_frame import frame_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class ChainRows:
    """Reads jobs through one chain: Connect's transforms where the rows are read, all others in Spark behind it."""

    def __init__(
        self, spark: SparkSession, name: str, chain: TransformChain, targets: Mapping[str, str], read: ReadRows
    ) -> None:
        """Args:
        name: of the source in the session, which nobody else uses at the time.
        chain: of all records of the jobs.
        targets: the remote topic of each source topic.
        read: given the stamp and the job as sealed, and the number of a bin, its rows; workers import it.
        """
        self._spark = spark
        self._name = name
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
            source = read_frame(self._spark, self._name, sealed, bins, self._read)
            return frame_of(source, self._chain, target_topic_of=self._targets)
        read = partial(read_through_smts, self._read, self.smts)
        source = read_frame(self._spark, self._name, sealed, bins, read, READ_THROUGH_SMTS_DDL)
        return frame_of(source, self._chain, target_topic_of=self._targets, through_smts=True)
