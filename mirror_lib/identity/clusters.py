"""Checks that a flow's aliases name the clusters that its ledger rows belong to.

The ledger identifies a flow by its aliases. Offset map, gaps, hand-overs and cutovers of one pair of clusters are wrong
for any other: a group would be committed on an empty log, a topic never copied.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from mirror_lib.cluster.admin.client import ClusterAdmin
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.topics.position_format import ClusterPair
from mirror_lib.config.model import ClientSettings, FlowConfig
from mirror_lib.errors import MirrorError, SourceClusterChangedError, TargetClusterChangedError, Where
from mirror_lib.identity import positions
from mirror_lib.ledger.rows import ClusterPairRow
from mirror_lib.ledger.store import Ledger
from mirror_lib.topology.names import FlowId


def cluster_pair(source: ClusterAdmin, target: ClusterAdmin) -> ClusterPair | None:
    """The ids of both clusters; None if one of them has none (before Kafka 0.10.1).

    Raises:
        MirrorError: a cluster cannot be reached.
    """
    ids = source.cluster_id(), target.cluster_id()
    return ClusterPair(ids[0], ids[1]) if ids[0] and ids[1] else None


def about_one_cluster(flow: FlowId, clusters: ClusterPair | None) -> tuple[str, ...]:
    """The notice about a flow whose aliases name the same cluster; nothing if they do not.

    Such a flow is legal, as in MM2: topics may be copied within a cluster. A flow that would copy its own copies is
    refused elsewhere (`sync.loops`).

    Args:
        flow: the flow.
        clusters: the ids of both; None if they are not known.
    """
    if clusters is None or clusters.source != clusters.target:
        return ()
    return (
        f"aliases {flow.source} and {flow.target} point to the same cluster ({clusters.source}): the copies are on the "
        "source itself, and are lost with it. If they are to be on another cluster, correct bootstrap.servers, or the "
        "advertised.listeners of the brokers that they name.",
    )


def check_clusters(flow: FlowConfig, ledger: Ledger | None, now: ClusterPair | None, *, note: bool = False) -> None:
    """Compare the clusters of a flow with the ids in the ledger.

    Args:
        ledger: None if there is none yet.
        now: the clusters that the flow's aliases name.
        note: store them if the ledger has none.

    Raises:
        SourceClusterChangedError: the rows belong to another source.
        TargetClusterChangedError: the rows belong to another target.
        LedgerError: the ledger cannot be used.
    """
    if ledger is None or now is None:
        return
    name = ledger_name(flow.flow)
    known = ledger.cluster_pairs.find(name)
    if known is None and note:
        known = ledger.cluster_pairs.keep(name, *now)
    if known is not None:
        _compare(flow.flow, known, source=now.source, target=now.target)


def check_heartbeats_cluster(pair: FlowId, ledger: Ledger | None, cluster_id: str | None) -> None:
    """Compare the cluster to which a pair writes heartbeats with the one that the ledger knows by its alias.

    A pair that only emits heartbeats has no rows; its target is the source of the flow that the heartbeats monitor.

    Args:
        pair: heartbeats are written to its target.
        ledger: None if there is none yet.
        cluster_id: id of the cluster that the target's alias names; None if it has none.

    Raises:
        SourceClusterChangedError: the rows of the monitored flow belong to another source.
        TargetClusterChangedError: the pair's rows belong to another target.
        LedgerError: the ledger cannot be used.
    """
    if ledger is None or cluster_id is None:
        return
    own, watched = (ledger.cluster_pairs.find(ledger_name(flow)) for flow in (pair, pair.opposite))
    if own is not None:
        _compare(pair, own, source=None, target=cluster_id)
    if watched is not None:
        _compare(pair.opposite, watched, source=cluster_id, target=None)


def compare_reachable_clusters(flow: FlowConfig, ledger: Ledger) -> tuple[str, ...]:
    """As `check_clusters`, for commands that need only the ledger and must work while a cluster is lost.

    Returns:
        A sentence for each cluster that was not compared.

    Raises:
        MirrorError: as `check_clusters`.
    """
    known = ledger.cluster_pairs.find(ledger_name(flow.flow))
    if known is None:
        return ()
    with ThreadPoolExecutor(max_workers=2) as pool:
        futures = [pool.submit(_id_of, each) for each in (flow.clients.source_admin, flow.clients.target_admin)]
        source, target = (each.result() for each in futures)
    _compare(
        flow.flow,
        known,
        source=None if isinstance(source, MirrorError) else source,
        target=None if isinstance(target, MirrorError) else target,
    )
    return tuple(
        f"Cluster {alias} was not compared with the cluster id in the ledger: {error.what}"
        for alias, error in ((flow.flow.source, source), (flow.flow.target, target))
        if isinstance(error, MirrorError)
    )


def _id_of(settings: ClientSettings) -> str | MirrorError | None:
    with ClusterAdmin(Connection.from_settings(settings), positions.PATIENCE_SECONDS) as admin:
        try:
            return admin.cluster_id()
        except MirrorError as error:
            return error


def _compare(flow: FlowId, known: ClusterPairRow, *, source: str | None, target: str | None) -> None:
    """Raise if a cluster has another id than in the ledger; None if it reports none."""
    name = known.flow
    for error, alias, then, here in (
        (TargetClusterChangedError, flow.target, known.target_id, target),
        (SourceClusterChangedError, flow.source, known.source_id, source),
    ):
        if here and then != here:
            raise error(
                f"alias {alias} points to cluster {here}, but the ledger's state of flow {name} belongs to cluster "
                f"{then} (since {known.since:%Y-%m-%d %H:%M}Z).",
                where=Where(flow=name),
                action=_ACTION.format(flow=name),
            )


_ACTION = (
    "If bootstrap.servers is wrong, correct it. If the flow of another team has the same name, use another alias or "
    "another mirror.ledger.url. If the cluster was replaced: `mirror clusters accept --flow '{flow}' --same` if the "
    "new cluster has the same records at the same offsets, `--new` to copy everything as a new flow."
)


def ledger_name(flow: FlowId) -> str:
    """The flow's own name: a backfill or other work next to it is between the same clusters."""
    return str(FlowId(flow.source, flow.target))
