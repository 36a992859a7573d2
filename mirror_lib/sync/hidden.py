"""What a cluster does not show to a user who may not describe it.

Whoever asks for all topics or groups gets those that he may describe, and no word about the others: a flow would leave
them out as if they were not there. Asked for one by its name, brokers tell what is missing from what is forbidden.
"""

from __future__ import annotations

from collections.abc import Iterable

from mirror_lib.cluster.admin import ClusterAdmin
from mirror_lib.errors import AuthorizationError, MirrorError


def hidden_topics(admin: ClusterAdmin, wanted: Iterable[str], listed: Iterable[str]) -> dict[str, MirrorError]:
    """Those of the wanted topics of which the cluster does not even say whether they exist, with its refusals.

    Args:
        wanted: names that are known from elsewhere, such as the configuration or stored positions.
        listed: what the cluster has listed.

    Raises:
        MirrorError: the cluster cannot be asked.
    """
    unseen = set(wanted) - set(listed)
    if not unseen:
        return {}
    errors = admin.describe_topics(unseen).errors
    return {topic: error for topic, error in sorted(errors.items()) if isinstance(error, AuthorizationError)}
