"""Whether a flow's aliases name the clusters that its rows in the ledger are about.

The ledger knows a flow by its aliases. Offset map, gaps, hand-overs and cutovers of one pair of clusters are wrong for
any other: a group would be committed on an empty log, a topic never copied.
"""

from __future__ import annotations

from mirror_lib.cluster.admin import ClusterAdmin
from mirror_lib.cluster.positions import ClusterPair
from mirror_lib.config.model import FlowConfig
from mirror_lib.errors import SourceClusterChangedError, TargetClusterChangedError, Where
from mirror_lib.ledger.store import Ledger
from mirror_lib.topology.names import FlowId


def cluster_pair(source: ClusterAdmin, target: ClusterAdmin) -> ClusterPair | None:
    """The ids of both clusters; None where one of them has none (before Kafka 0.10.1).

    Raises:
        MirrorError: a cluster cannot be reached.
    """
    ids = source.cluster_id(), target.cluster_id()
    return ClusterPair(ids[0], ids[1]) if ids[0] and ids[1] else None


def check_clusters(flow: FlowConfig, ledger: Ledger | None, now: ClusterPair | None, *, note: bool = False) -> None:
    """Compare the clusters of a flow with those that its rows in the ledger are about.

    Args:
        ledger: None where there is none yet.
        now: the clusters that the flow's aliases name.
        note: note them where the ledger does not know any.

    Raises:
        SourceClusterChangedError: the rows are about another source.
        TargetClusterChangedError: the rows are about another target.
        LedgerError: the ledger cannot be used.
    """
    if ledger is None or now is None:
        return
    name = ledger_name(flow.flow)
    known = ledger.cluster_pairs.find(name)
    if known is None and note:
        known = ledger.cluster_pairs.keep(name, *now)
    if known is None:
        return
    for error, alias, then, here in (
        (TargetClusterChangedError, flow.flow.target, known.target_id, now.target),
        (SourceClusterChangedError, flow.flow.source, known.source_id, now.source),
    ):
        if then != here:
            raise error(
                f"alias {alias} names cluster {here}, but what the ledger holds of flow {name} is about cluster {then} "
                f"(since {known.since:%Y-%m-%d %H:%M}Z).",
                where=Where(flow=name),
                action=_ACTION.format(flow=name),
            )


_ACTION = (
    "If bootstrap.servers is wrong, correct it; if another team's flow has the same name, use another alias or another "
    "mirror.ledger.url. If the cluster was replaced: `mirror clusters accept --flow '{flow}' --same` when the new one "
    "holds the same records at the same offsets, `--new` to copy everything as a new flow."
)


def ledger_name(flow: FlowId) -> str:
    """The flow itself: work beside it, such as a backfill, is between the same clusters."""
    return str(FlowId(flow.source, flow.target))
