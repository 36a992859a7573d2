"""RegexRouters that only rename topics: an equivalent rename, which groups and cutovers follow, is suggested."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mirror_lib.config.file.derive import FlowSettings
from mirror_lib.features.transforms.smt.chain import SmtChain
from mirror_lib.features.transforms.smt.model import RegexRouter
from mirror_lib.problems import Problem, Severity
from mirror_lib.topology.policy import SOURCE_ALIAS, keeps_names

_REGEX, _REPLACEMENT = "mirror.topics.rename.regex", "mirror.topics.rename.replacement"
_POLICY, _SEPARATOR = "replication.policy.class", "replication.policy.separator"


def router_problems(settings: FlowSettings, chain: SmtChain | None) -> Iterator[Problem]:
    """Yield a warning for each RegexRouter that takes all records of a topic; keys are without the flow's prefix."""
    for stage in () if chain is None else chain.settings.stages:
        if not isinstance(stage.transform, RegexRouter) or stage.predicate is not None:
            continue
        key = f"{stage.prefix}.regex"
        source_regex = _source_regex(settings, stage.transform.regex)
        lines = (
            f"write {settings.flow}.{_REGEX} = {_escape(source_regex)} and {settings.flow}.{_REPLACEMENT} = "
            f"{_escape(stage.transform.replacement)}"
            if source_regex is not None
            else f"write {settings.flow}.{_REGEX} for the names of source topics, and {settings.flow}.{_REPLACEMENT}"
        )
        yield Problem(
            severity=Severity.WARNING,
            message=f"{key}: the transform {stage.name} renames topics record by record: offsets of groups are not "
            "translated for these topics, a cutover cannot move them, and each topic is created under both "
            "names; the flow needs the first one, which stays empty",
            key=key,
            suggestion=f"{lines}, and remove {stage.name} from {settings.flow}.transforms",
        )


def _escape(text: str) -> str:
    """Return a value as written in a properties file."""
    return text.replace("\\", "\\\\")


def _source_regex(settings: FlowSettings, regex: str) -> str | None:
    """Return the regex for names of the source; None if it cannot be derived from the one for names of the target."""

    def value(name: str, default: str) -> str:
        setting = settings.connector.get(name)
        return default if setting is None else setting.value.strip()

    policy = value(_POLICY, "DefaultReplicationPolicy")
    if keeps_names(policy):
        return regex
    if policy.rpartition(".")[2] != "DefaultReplicationPolicy":
        return None
    alias, separator = value(SOURCE_ALIAS, settings.flow.source), value(_SEPARATOR, ".")
    # A dot is mostly written without a backslash.
    for prefix in (re.escape(alias + separator), alias + re.escape(separator), alias + separator):
        rest = regex.removeprefix(prefix)
        # An alternative without the prefix matches topics that this flow does not write.
        if rest != regex and "|" not in rest:
            return rest
    return None
