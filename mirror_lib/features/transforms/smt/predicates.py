"""The conditions of SMTs (KIP-585)."""

from __future__ import annotations

from collections.abc import Callable

from mirror_lib.features.transforms.smt.model import HasHeaderKey, Predicate, RecordIsTombstone, Stage, TopicNameMatches
from mirror_lib.features.transforms.smt.record import SmtRecord
from mirror_lib.topology.java_regex import compile_java


def condition_of(predicate: Predicate) -> Callable[[SmtRecord], bool]:
    """Return a predicate as a function of the record."""
    match predicate:
        case TopicNameMatches(pattern):
            compiled = compile_java(pattern)
            return lambda record: compiled.fullmatch(record.topic) is not None
        case HasHeaderKey(name):
            return lambda record: any(header.name == name for header in record.headers)
        case RecordIsTombstone():
            return lambda record: record.value is None


def holds(predicate: Predicate, record: SmtRecord) -> bool:
    """Return True if a predicate is true for a record."""
    return condition_of(predicate)(record)


def applies(stage: Stage, record: SmtRecord) -> bool:
    """Return True if a stage's SMT is applied to a record (`TransformationStage.apply`)."""
    return stage.predicate is None or holds(stage.predicate, record) != stage.negate
