"""The transforms of a chain as nested DataFrames: from records as they were read to those to be written.

Every stage is narrow, and rows keep their order: each input partition of Spark becomes one output partition.

In one transform the record is decoded first, then filtered, and all columns are computed from the record as it was
before. The next transform sees the result, as bytes again.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql import functions as sf

from mirror_lib.features.transforms.model import (
    RECORDS,
    TARGET_COLUMNS,
    FunctionKind,
    SelectStatement,
    Transform,
    TransformChain,
)
from mirror_lib.features.transforms.smt.chain import SmtChain
from mirror_lib.features.transforms.sql.select_text import carry_columns
from spark_jobs.sealing import seal
from spark_jobs.transforms.columns import decode
from spark_jobs.transforms.functions import apply_batch_function, apply_dataframe_function
from spark_jobs.transforms.hidden_columns import NEW, TOPIC
from spark_jobs.transforms.registry import RegistrySides
from spark_jobs.transforms.state import (
    CARRIED,
    SIDES,
    begin,
    close_frame,
    open_frame,
    outgoing_frame,
    speaking_of,
    types_of,
)
from spark_jobs.transforms.tasks import TargetTopicOf, apply_smts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Spark's setting that lets SQL read a file as a table: text.`/etc/passwd`. Both `mirror config check` and Spark refuse
#: such SQL.
_FILES_AS_TABLES = "spark.sql.runSQLOnFiles"
#: Spark's settings under which SQL means what `mirror config check` has checked: with the first, `${env:X}` in a text
#: would become another text before it is parsed; with the second, a string would become a name.
_AS_CHECKED = ("spark.sql.variable.substitute", "spark.sql.ansi.doubleQuotedIdentifiers")


def frame_of(
    source: DataFrame, chain: TransformChain, *, target_topic_of: TargetTopicOf, through_smts: bool = False
) -> DataFrame:
    """The records of a chain.

    Nothing is read yet: failures of transforms for a record occur when the result is read, and the text of an error
    from this project's stages has a mark (`mirror_lib.features.transforms.record_mark`).

    Args:
        source: the columns of Spark's Kafka source with headers, and `__mirror_source`, a struct of `place` and
            `offset` that every row of a record carries through.
        chain: chain of the topics of these records.
        target_topic_of: target topic of a topic, which Connect's transforms see.
        through_smts: whether the records have already passed Connect's transforms; then there is one more column,
            `__mirror_topic`.

    Returns:
        `key`, `value`, `headers`, `timestamp`, `topic`, `partition` and `__mirror_source`; topic and partition are null
        if no transform has set them.

    Raises:
        ConfigurationError: Spark refuses a transform; the error names it.
    """
    # For the whole session: Spark Connect analyses a plan again when it runs.
    for setting in (_FILES_AS_TABLES, *_AS_CHECKED):
        source.sparkSession.conf.set(setting, "false")
    frame = begin(source, has_topic=through_smts)
    if through_smts:
        frame = _seen_under_new_topic(frame)
    elif chain.smt is not None and chain.smt.settings.stages:
        frame = _through_smts(frame, chain.smt, target_topic_of)
    registry = RegistrySides(chain, target_topic_of)
    for transform in chain.transforms:
        frame = _transform(frame, transform, registry)
    return outgoing_frame(registry.renumber(frame))


def _through_smts(frame: DataFrame, chain: SmtChain, target_topic_of: TargetTopicOf) -> DataFrame:
    """Apply Connect's transforms."""
    made = frame.mapInArrow(partial(apply_smts, *seal(chain), target_topic_of), frame.schema)
    return _seen_under_new_topic(made)


def _seen_under_new_topic(frame: DataFrame) -> DataFrame:
    """The frame in which the next transform sees the topic that Connect's transforms have set."""
    return frame.withColumn("topic", sf.coalesce(TOPIC, "topic"))


def _transform(frame: DataFrame, transform: Transform, registry: RegistrySides) -> DataFrame:
    with speaking_of(transform):
        read = _decode(frame, transform, registry)
    if transform.select is not None:
        return _select(read, transform, transform.select, registry)
    if transform.function is not None:
        is_batches = transform.function.kind is FunctionKind.ARROW
        apply = apply_batch_function if is_batches else apply_dataframe_function
        return apply(read, transform, transform.function, registry)
    return _compute(read, transform, registry)


def _decode(frame: DataFrame, transform: Transform, registry: RegistrySides) -> DataFrame:
    """The frame as the transform sees it. A side that it does not read may have any format."""
    decodings = {"key": transform.decode.key, "value": transform.decode.value}
    sides = [side for side in SIDES if transform.reads is None or side in transform.reads]
    by_registry = [side for side in registry.needed_sides(transform.decode) if side in sides]
    others = {}
    for side in sides:
        if side not in by_registry:
            frame, others[side] = decode(frame, decodings[side], side)
    more, seen = registry.decode(frame, transform, by_registry)
    return open_frame(more, {**others, **seen})


def _compute(read: DataFrame, transform: Transform, registry: RegistrySides) -> DataFrame:
    """Apply a filter and column expressions."""
    named = read.alias(RECORDS)
    if transform.filter is not None:
        with speaking_of(transform, "filter"):
            named = named.filter(sf.expr(transform.filter))
            types_of(named)
    new = {name: f"{NEW}{name}" for name, _ in transform.columns}
    with speaking_of(transform):
        try:
            made = named.select(*CARRIED, *(sf.expr(text).alias(new[name]) for name, text in transform.columns))
            types_of(made)
        except AnalysisException:
            for name, text in transform.columns:
                with speaking_of(transform, name):
                    types_of(named.select(sf.expr(text)))
            raise
    return close_frame(registry.encode(made, transform, new, replaces=True), transform, new)


def _select(read: DataFrame, transform: Transform, select: SelectStatement, registry: RegistrySides) -> DataFrame:
    """Apply a SELECT to the records. Columns that only a `*` names are not set."""
    # sqlglot is imported only if there is SQL to parse.
    statement = carry_columns(select, CARRIED)
    with speaking_of(transform, "sql.file"):
        result = read.sparkSession.sql(statement.text, frame=read)
        outputs = [name.lower() for name in result.columns[len(CARRIED) :]]
    # By position: with a `*`, names occur more than once.
    made = result.toDF(*CARRIED, *(f"{NEW}{number}" for number in range(len(outputs))))
    last = {name: f"{NEW}{number}" for number, name in enumerate(outputs)}
    new = {name: last[name] for name in TARGET_COLUMNS if outputs.count(name) > statement.stars}
    return close_frame(registry.encode(made, transform, new, replaces=True), transform, new)
