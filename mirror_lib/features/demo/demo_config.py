"""The demo's properties file. No I/O."""

from __future__ import annotations

from collections.abc import Sequence

from mirror_lib.features.demo.stack import ONE_BROKER

_TEMPLATE = """\
# Written by `mirror demo`; MirrorMaker 2 itself understands every line but the last ones.
clusters = {source}, {target}
{source}.bootstrap.servers = {source_servers}
{target}.bootstrap.servers = {target_servers}

{source}->{target}.enabled = true
{source}->{target}.topics = {topics}
{target}->{source}.enabled = false

# Records of aborted transactions stay behind.
{source}.consumer.isolation.level = read_committed
tasks.max = {tasks}

{one_broker}
# The flow's DAG runs when somebody triggers it. For a run every five minutes:
# {source}->{target}.mirror.schedule = 5m
"""


def demo_properties(source: tuple[str, str], target: tuple[str, str], *, topics: Sequence[str], tasks: int) -> str:
    """Return the text of the file.

    Args:
        source: alias and bootstrap servers.
        target: alias and bootstrap servers.
        topics: the source topics to copy.
        tasks: number of Spark tasks that copy in parallel.
    """
    return _TEMPLATE.format(
        source=source[0],
        source_servers=source[1],
        target=target[0],
        target_servers=target[1],
        topics=", ".join(topics),
        tasks=tasks,
        one_broker=ONE_BROKER,
    )
