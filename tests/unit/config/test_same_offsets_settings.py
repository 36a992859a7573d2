"""What a file may not combine with `mirror.offsets = same`."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_lib.config.loader import check, load
from mirror_lib.problems import Severity
from tests.support.flow_files import write_flow

SAME = "A->B.mirror.offsets = same"


def test_a_flow_may_keep_the_offsets_of_its_source(tmp_path: Path) -> None:
    (flow,) = load(write_flow(tmp_path, SAME)).enabled_flows

    assert flow.copy_settings.same_offsets
    assert flow.copy_settings.most_holes == 100_000_000


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("mirror.fencing = none", "offsets without a record need transactional ids"),
        ("mirror.target.existing = append", "target topics must be new"),
        ("mirror.first.start = latest", "a copy begins at the first record of the source"),
        ("mirror.first.start.topics = audit=latest", "a copy begins at the first record of the source"),
        ("A.consumer.auto.offset.reset = latest", "a copy begins at the first record of the source"),
    ],
)
def test_settings_that_would_give_records_other_offsets_are_errors(tmp_path: Path, line: str, told: str) -> None:
    path = write_flow(tmp_path, SAME, line)

    (problem,) = [each for each in check(path) if "mirror.offsets=same" in each.message]

    assert problem.severity is Severity.ERROR
    assert told in problem.message
    assert not [each for each in check(write_flow(tmp_path, line)) if "mirror.offsets" in each.message]
