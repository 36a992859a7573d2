"""What tests on the shared clusters have in common."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.clusters import KafkaPair
from tests.support.mirrored_topic import MirroredTopic


@pytest.fixture
def mirrored(kafka_pair: KafkaPair, topic_name: str, tmp_path: Path) -> MirroredTopic:
    """The test's own topic; it does not exist before `create`."""
    return MirroredTopic(kafka_pair, topic_name, tmp_path)
