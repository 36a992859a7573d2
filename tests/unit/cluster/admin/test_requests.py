"""A broker that does not answer takes its time once, not once for every request that asks for something of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from mirror_lib.cluster.admin import requests as admin_calls
from mirror_lib.cluster.admin.requests import AdminCalls, Question
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.protocol.error_codes import LocalCode
from mirror_lib.errors import MirrorError, Where
from mirror_lib.topology.access import Grant, Operation

_SECONDS = 0.4


def test_after_a_silence_the_requests_behind_it_get_little_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_calls, "_AFTER_SILENCE_SECONDS", 0.01)
    given: list[float] = []

    def ask(keys: Sequence[int], seconds: float) -> Mapping[int, Future[Any]]:
        """Every tenth key is led by a broker that does not answer."""
        given.append(seconds)
        futures: dict[int, Future[Any]] = {key: Future() for key in keys}
        for key, future in futures.items():
            if key % 10:
                future.set_result(key)
            else:
                future.set_exception(KafkaException(KafkaError(LocalCode.TIMED_OUT)))
        return futures

    question = Question(
        "ask", 10, ask, lambda _: Where(cluster="A"), lambda _: Grant.on_topic(Operation.DESCRIBE, "orders")
    )

    found, codes = AdminCalls(Connection("A", ("localhost:1",)), 30.0).ask_once(question, range(300), _SECONDS)

    assert sorted(found) == list(range(300))
    assert {key for key, answer in found.items() if not isinstance(answer, MirrorError)} == set(codes) ^ set(range(300))
    assert codes == dict.fromkeys(range(0, 300, 10), LocalCode.TIMED_OUT)
    assert len(given) == 30
    assert (set(given[:8]), set(given[8:])) == ({_SECONDS}, {0.01})
