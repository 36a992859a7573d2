"""Topics and groups that a flow's lists name one by one but the flow excludes, each with its reason. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mirror_lib.config.model import FlowConfig
from mirror_lib.config.name_patterns import excluded_groups, excluded_names
from mirror_lib.topology.flow_topology import Exclusion

#: Maximum number of names shown for one reason; a list of topics may be long.
_SHOWN = 5
_WHY: Mapping[Exclusion, str] = {
    Exclusion.INTERNAL: "names that begin with `__` or `.`, and topics of MirrorMaker, are internal",
    Exclusion.CYCLE: "by its name it was copied from cluster {target}, and would be copied in a loop; for an ordinary "
    "topic of cluster {source} with such a name use another separator or policy (replication.policy.*)",
    Exclusion.FILTERED: "it matches `topics.exclude`",
}


def about_excluded(flow: FlowConfig) -> Iterator[str]:
    """Yield a sentence for each reason for which topics that the flow's `topics` names are not copied."""
    by_reason: dict[Exclusion, list[str]] = {}
    for name, exclusion in sorted(excluded_names(flow).items()):
        by_reason.setdefault(exclusion, []).append(name)
    for exclusion, names in by_reason.items():
        shown = _shown(names)
        why = _WHY[exclusion].format(source=flow.source_alias, target=flow.target_alias)
        yield f"`topics` of flow {flow.flow} names {shown}, which is not copied ({exclusion.value}): {why}."


def about_excluded_groups(flow: FlowConfig) -> Iterator[str]:
    """Yield a sentence about groups that the flow's `groups` names and that are not translated."""
    names = sorted(excluded_groups(flow))
    if names:
        yield (
            f"`groups` of flow {flow.flow} names {_shown(names)}, which is not translated: it matches "
            f"`groups.exclude` ({', '.join(flow.groups_exclude)}), which takes precedence."
        )


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
