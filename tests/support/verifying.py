"""Verifying a test's flow, and targets that somebody has tampered with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mirror_lib.verify.local import run_locally
from mirror_lib.verify.report import VerifyReport
from mirror_lib.verify.verification import VerifyOptions, verify_flow
from tests.support.clusters import KafkaPair
from tests.support.flows import Flow
from tests.support.kafka import Record, consume, create_topic, delete_topic, produce


def verify(flow: Flow, **options: Any) -> VerifyReport:
    """One verification in this process."""
    return verify_flow(
        flow.config, ledger=flow.ledger, make_runner=lambda _: run_locally(1), options=VerifyOptions(**options)
    )


def tamper(pair: KafkaPair, topic: str, change: Callable[[list[Record]], Sequence[Record]]) -> None:
    """Put a changed copy of a remote topic of one partition in its place, with the target's own producer."""
    copy = change(consume(pair.target, topic))
    delete_topic(pair.target, topic)
    create_topic(pair.target, topic)
    produce(pair.target, topic, copy)
