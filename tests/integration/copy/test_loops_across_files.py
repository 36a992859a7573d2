"""Two files with one direction each and one ledger: what goes in a circle is refused before it is copied."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from mirror_lib.config.loader import load
from mirror_lib.copy.flow_plan import plan_flow
from mirror_lib.copy.run_options import RunOptions
from mirror_lib.errors import ConfigurationError
from tests.support.flows import Flow, make_flow
from tests.support.kafka import consume, create_topic, produce, records
from tests.support.mirrored_topic import MirroredTopic

_IDENTITY = {"replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"}


def both(
    mirrored: MirroredTopic, there: dict[str, str], back: dict[str, str], *, back_topics: str
) -> tuple[Flow, Flow]:
    """A flow each way, in files with aliases of their own that share a ledger."""
    mirrored.create(records(10))
    shared = {"mirror.ledger.url": f"sqlite:///{mirrored.folder}/ledger.sqlite3"}
    servers = mirrored.source.bootstrap_servers, mirrored.target.bootstrap_servers
    first = make_flow(mirrored.folder, *servers, topics=mirrored.name, settings={**shared, **there})
    other = mirrored.folder / "other"
    other.mkdir()
    text = make_flow(other, *servers[::-1], topics=back_topics, settings={**shared, **back}).path
    renamed = text.read_text().replace("A->B", "home->away").replace("clusters = A, B", "clusters = home, away")
    text.write_text(renamed.replace("A.bootstrap", "home.bootstrap").replace("B.", "away."))
    return first, replace(first, config=load(text).flow("home->away"), path=text)


def test_names_that_are_kept_in_both_directions_are_refused(mirrored: MirroredTopic) -> None:
    there, back = both(mirrored, _IDENTITY, _IDENTITY, back_topics=mirrored.name)
    assert there.run().errors == ()

    for refused in (back.run, lambda: plan_flow(back.config, RunOptions(), back.ledger)):
        with pytest.raises(ConfigurationError, match="in a loop") as caught:
            refused()
        assert f"flow A->B has copied {mirrored.name} to {mirrored.name}" in caught.value.what

    assert len(consume(mirrored.source, mirrored.name)) == 10
    # The other direction is as it was.
    assert there.run().errors == ()


def test_a_flow_that_has_ended_is_no_circle(mirrored: MirroredTopic) -> None:
    """The other direction in a file of its own, with the same aliases."""
    there, _ = both(mirrored, _IDENTITY, _IDENTITY, back_topics=mirrored.name)
    assert there.run().errors == ()
    turned = there.path.with_name("turned.properties")
    turned.write_text(there.path.read_text().replace("A->B.", "B->A.") + "A.offset.storage.replication.factor = 1\n")

    with pytest.raises(ConfigurationError, match="in a loop") as caught:
        plan_flow(load(turned).flow("B->A"), RunOptions(), there.ledger)

    (line,) = re.findall(r"write `([^`]+)` into this file", caught.value.action)
    turned.write_text(f"{turned.read_text()}{line}\n")
    assert plan_flow(load(turned).flow("B->A"), RunOptions(), there.ledger).problems == ()


def test_renames_whose_names_grow_are_refused_as_soon_as_they_have_come_round(mirrored: MirroredTopic) -> None:
    rename = {"mirror.topics.rename.regex": "(.*)", "mirror.topics.rename.replacement": "$1.copy"}
    there, back = both(mirrored, rename, rename, back_topics=f"{mirrored.name}.*")
    there = replace(there, config=there.config.model_copy(update={"topics": (f"{mirrored.name}.*",)}))

    def rounds() -> None:
        for _ in range(3):
            assert there.run().errors == ()
            assert back.run().errors == ()

    with pytest.raises(ConfigurationError, match="in a loop"):
        rounds()


def test_two_directions_that_share_no_topic_run(mirrored: MirroredTopic) -> None:
    there, back = both(mirrored, _IDENTITY, _IDENTITY, back_topics=f"{mirrored.name}-west")
    create_topic(mirrored.target, f"{mirrored.name}-west")
    produce(mirrored.target, f"{mirrored.name}-west", records(5))

    assert [flow.run().records for flow in (there, back, there, back)] == [10, 5, 0, 0]
