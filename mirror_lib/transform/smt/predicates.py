"""The conditions of SMTs (KIP-585)."""

from __future__ import annotations

from mirror_lib.topology.java_regex import compile_java
from mirror_lib.transform.smt.model import HasHeaderKey, Predicate, RecordIsTombstone, Stage, TopicNameMatches
from mirror_lib.transform.smt.record import SmtRecord


def holds(predicate: Predicate, record: SmtRecord) -> bool:
    """Whether a predicate is true for a record."""
    match predicate:
        case TopicNameMatches(pattern):
            return compile_java(pattern).fullmatch(record.topic) is not None
        case HasHeaderKey(name):
            return any(header.name == name for header in record.headers)
        case RecordIsTombstone():
            return record.value is None


def applies(stage: Stage, record: SmtRecord) -> bool:
    """Whether a stage's SMT is applied to a record (`TransformationStage.apply`)."""
    return stage.predicate is None or holds(stage.predicate, record) != stage.negate
