"""`mirror.rate.limit.*`: what stands where, and what a flow has of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_lib.config import loader as loading
from mirror_lib.config.model import MirrorConfig
from mirror_lib.config.settings.reference import markdown_reference
from mirror_lib.errors import ConfigurationError

CLUSTERS = ("clusters = A, B", "A.bootstrap.servers = a:9092", "B.bootstrap.servers = b:9092")
HEAD = (*CLUSTERS, "A->B.enabled = true", "B->A.enabled = true")


def load(folder: Path, *lines: str) -> MirrorConfig:
    file = folder / "mirror.properties"
    file.write_text("\n".join((*HEAD, *lines)))
    return loading.load(file)


def test_without_a_word_nothing_is_limited(tmp_path: Path) -> None:
    flow = load(tmp_path).flow("A->B")

    limits = (
        flow.copy_settings.rate_limit_bytes,
        flow.source_rate_limit_read_bytes,
        flow.target_rate_limit_write_bytes,
    )
    assert limits == (0, 0, 0)


def test_the_limit_of_one_flow_wins_over_that_of_all(tmp_path: Path) -> None:
    config = load(tmp_path, "mirror.rate.limit.bytes = 1000", "A->B.mirror.rate.limit.bytes = 5000000000")

    assert config.flow("A->B").copy_settings.rate_limit_bytes == 5_000_000_000
    assert config.flow("B->A").copy_settings.rate_limit_bytes == 1000


def test_a_cluster_limits_reading_for_flows_from_it_and_writing_for_flows_to_it(tmp_path: Path) -> None:
    config = load(tmp_path, "A.mirror.rate.limit.read.bytes = 10", "A.mirror.rate.limit.write.bytes = 20")

    there, back = config.flow("A->B"), config.flow("B->A")
    assert (there.source_rate_limit_read_bytes, there.target_rate_limit_write_bytes) == (10, 0)
    assert (back.source_rate_limit_read_bytes, back.target_rate_limit_write_bytes) == (0, 20)
    assert config.warnings == ()


def test_a_limit_that_stands_in_the_wrong_place_or_is_none_is_an_error(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for line, told in [
        ("mirror.rate.limit.read.bytes = 10", "belongs to a cluster"),
        ("A->B.mirror.rate.limit.write.bytes = 10", "belongs to a cluster, not to a flow"),
        ("A.mirror.rate.limit.bytes = 10", "is not allowed under a cluster"),
        ("A.mirror.rate.limit.read.bytes = -1", "at least 0"),
        ("A.mirror.rate.limit.read.bytes = fast", "must be"),
        ("A.mirror.rate.limit.reed.bytes = 10", "is not a setting"),
    ]:
        with subtests.test(line):
            with pytest.raises(ConfigurationError, match=r"rate\.limit") as raised:
                load(tmp_path, line)

            assert told in str(raised.value)


def test_the_reference_tells_of_all_three() -> None:
    text = markdown_reference()

    for name in ("mirror.rate.limit.bytes", "mirror.rate.limit.read.bytes", "mirror.rate.limit.write.bytes"):
        assert f"| `{name}` | long | `0` |" in text
