"""Two clusters on which a user may do only what he is granted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.clusters import start_together
from tests.support.kafka import delete_topics
from tests.support.names import unique_name
from tests.support.security.restricted import Granter, RestrictedPair, restricted_cluster


@pytest.fixture(scope="module")
def restricted_pair(kafka_jars: Path, brokers_folder: Path) -> Iterator[RestrictedPair]:
    """Two single-broker clusters with authorizers."""
    folder = brokers_folder / unique_name("restricted")
    source, target = (restricted_cluster(name, folder, kafka_jars) for name in ("restricted-a", "restricted-b"))
    with start_together(source, target):
        yield RestrictedPair(Granter(source), Granter(target))


@pytest.fixture(autouse=True)
def _no_topics_for_the_next_test(restricted_pair: RestrictedPair) -> Iterator[None]:
    """Each test has a world of its own, and a hundred worlds would slow down the last ones."""
    yield
    for granter in (restricted_pair.source, restricted_pair.target):
        delete_topics(granter.cluster)
