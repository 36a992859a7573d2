"""The topic that most cutovers here move."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.cutovers import Migration, moving_topic
from tests.support.mirrored_topic import MirroredTopic


@pytest.fixture
def moving(mirrored: MirroredTopic) -> Iterator[Migration]:
    """A topic of the source with 100 records in 2 partitions, and both flows for it."""
    with moving_topic(mirrored.folder, mirrored.pair, mirrored.name, partitions=2) as made:
        yield made
