"""Read the users of a cutover's topics on the source: groups, their members, and transactional ids."""

from __future__ import annotations

from collections.abc import Sequence

from mirror_lib.cluster.admin.groups import GroupAdmin, GroupKind, GroupState
from mirror_lib.cluster.connection import Connection
from mirror_lib.config.model import FlowConfig
from mirror_lib.config.topology import flow_topology, group_filter
from mirror_lib.copy.transfer.open_positions import is_own_transactional_id
from mirror_lib.errors import MirrorError
from mirror_lib.features.cutover.dependencies import Belonging
from mirror_lib.features.cutover.gates import first_places
from mirror_lib.features.cutover.scope import ScopeTopic
from mirror_lib.features.cutover.transactional_topics import transactional_writers
from mirror_lib.sync.admins import flow_admins
from mirror_lib.topology.java_regex import compile_list

_OTHER_KINDS = (GroupKind.SHARE, GroupKind.STREAMS)


def read_belonging(
    flow: FlowConfig, opposite: FlowConfig | None, topics: Sequence[ScopeTopic], patterns: Sequence[str]
) -> Belonging:
    """Return the present users of the source's topics.

    Args:
        flow: as it runs now; `opposite` is the failback flow.
        topics: of the scope.
        patterns: Java regexes for the groups of the scope.

    Raises:
        MirrorError: a request to a cluster failed.
    """
    takes, wanted = group_filter(flow).should_replicate_group, compile_list(tuple(patterns))
    mine = {topic.source for topic in topics}
    with GroupAdmin(Connection.from_settings(flow.clients.source_admin), flow.admin_timeout_ms / 1000) as groups:
        listed = groups.list_groups()
        committed = groups.fetch_committed(name for name, each in listed.items() if each.kind.of_consumers)
    read = {name: {place.topic for place in offsets} for name, offsets in committed.offsets.items()}
    uncommitted: dict[str, frozenset[str]] = {}
    unplaced: set[str] = set()
    unknown = set(committed.errors)
    with flow_admins(flow) as (source, target):
        present = source.list_topics()
        active = [each.group for each in listed.values() if each.kind.of_consumers and each.state is GroupState.ACTIVE]
        for name, assigned in (source.group_assignments(active) if active else {}).items():
            if isinstance(assigned, MirrorError):
                unknown.add(name)
            else:
                with_offsets, topics_read = read.setdefault(name, set()), {place.topic for place in assigned}
                if with_offsets:
                    uncommitted[name] = frozenset(topics_read - with_offsets)
                elif name not in committed.errors:
                    unplaced.add(name)
                with_offsets |= topics_read
        copies: set[str] = set()
        if opposite is not None:
            back = flow_topology(opposite)
            copies = {back.remote_topic(name) for name in target.list_topics() if back.replicates(name)}
    # Offsets may outlive their topic for a while.
    exists = set(present)
    data = Connection.from_settings(flow.clients.data_consumer)
    writers = transactional_writers(data, mine, lambda: (name for name in present if not name.startswith("__")))
    return Belonging(
        read={name: frozenset(each & exists) for name, each in read.items()},
        written={name: each for name, each in writers.topics.items() if not is_own_transactional_id(name)},
        moving=frozenset(name for name in read if takes(name) and wanted is not None and wanted.fullmatch(name)),
        gone=frozenset(mine | flow.handovers.away | copies),
        uncommitted=uncommitted,
        unplaced=frozenset(unplaced),
        unknown=tuple(
            _not_known(
                sorted(unknown),
                sorted(name for name, each in listed.items() if each.kind in _OTHER_KINDS),
                sorted(writers.unknown),
                transactions=writers.known,
            )
        ),
    )


def _not_known(groups: Sequence[str], other: Sequence[str], topics: Sequence[str], *, transactions: bool) -> list[str]:
    found = []
    if groups:
        found.append(f"the offsets of {first_places(groups)}")
    if other:
        found.append(f"the topics of the share and streams groups {first_places(other)}")
    if topics:
        found.append(f"the transactional producers of {first_places(topics)}")
    if not transactions:
        found.append("all transactional producers: the brokers of the source are older than Kafka 3.0")
    return found
