"""Config sync of a flow's topics between two clusters: read, plan, change."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mirror_lib.cluster.admin.client import ClusterAdmin, ConfigChange
from mirror_lib.config.model import FlowConfig
from mirror_lib.config.name_patterns import named_topics
from mirror_lib.counted import counted
from mirror_lib.errors import MirrorError, TopicMissingError
from mirror_lib.identity.clusters import check_clusters, cluster_pair
from mirror_lib.ledger.store import Ledger
from mirror_lib.sync.admins import flow_admins
from mirror_lib.sync.configs.plan import ConfigFacts, ConfigPlan, ConfigRule, TopicConfigSteps, plan_configs
from mirror_lib.sync.due_steps import StepResult, run_if_due
from mirror_lib.sync.hidden_by_acls import hidden_topics
from mirror_lib.sync.intervals import SyncStep
from mirror_lib.sync.topics.refusals import (
    INDISPENSABLE,
    Configs,
    Outcome,
    done_without_refused,
    is_unsupported,
    refuses_value,
)
from mirror_lib.topology.flow_topology import FlowTopology
from mirror_lib.topology.rename import NameFault

_log = logging.getLogger(__name__)
#: A log line for each of thousands of topics does not help.
_LINES_SHOWN = 50
#: Names that cannot be used; other faults only prevent the creation of a topic.
_UNUSABLE = (NameFault.COLLISION, NameFault.RESERVED)


@dataclass(frozen=True, slots=True)
class ConfigSync:
    """The plan for the configs of a flow's topics and, unless it was a dry run, the changes that were rejected."""

    plan: ConfigPlan
    applied: bool = False
    #: By remote topic.
    failed: tuple[tuple[TopicConfigSteps, MirrorError], ...] = ()
    #: Configs that the cluster rejects and that are skipped.
    notices: tuple[str, ...] = ()

    @property
    def errors(self) -> tuple[MirrorError, ...]:
        """All errors."""
        return (*self.plan.problems, *(error for _, error in self.failed))

    @property
    def exit_code(self) -> int:
        """0 without errors, else the highest exit code of the errors."""
        return max((error.exit_code for error in self.errors), default=0)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        return {
            **self.plan.to_dict(),
            "applied": self.applied,
            "failed": [{**error.attributes(), "topic": change.topic} for change, error in self.failed],
            "notices": list(self.notices),
        }


def plan_flow_configs(flow: FlowConfig, topology: FlowTopology, ledger: Ledger | None = None) -> ConfigSync:
    """Return the changes that are due. Reads both clusters, changes nothing.

    Args:
        flow: the flow.
        topology: its rules about topics, possibly limited to some topics.
        ledger: has the flow's cluster ids; None if there is none yet.

    Raises:
        MirrorError: a cluster cannot be used, the flow's rules are wrong, or an alias names another cluster.
    """
    with flow_admins(flow) as (source, target):
        check_clusters(flow, ledger, cluster_pair(source, target))
        return ConfigSync(plan_configs(flow, gather_config_facts(topology, source, target, named_topics(flow))))


def apply_flow_configs(flow: FlowConfig, topology: FlowTopology, ledger: Ledger | None = None) -> ConfigSync:
    """Set the configs of remote topics as the rules require. A rejected topic does not stop the others.

    Args:
        flow: the flow.
        topology: its rules about topics, possibly limited to some topics.
        ledger: as in `plan_flow_configs`.

    Raises:
        MirrorError: as `plan_flow_configs`.
    """
    with flow_admins(flow) as (source, target):
        check_clusters(flow, ledger, cluster_pair(source, target))
        plan = plan_configs(flow, gather_config_facts(topology, source, target, named_topics(flow)))
        return apply_configs(plan, target)


def sync_flow_configs(
    flow: FlowConfig, topology: FlowTopology, ledger: Ledger, *, dry_run: bool, at_once: bool = False
) -> dict[str, Any]:
    """Run `apply_flow_configs` as a step of a scheduled run (`run_if_due`); log, and return counts and problems.

    Raises:
        MirrorError: as `apply_flow_configs`.
    """

    def run() -> StepResult:
        done = (plan_flow_configs if dry_run else apply_flow_configs)(flow, topology, ledger)
        _log_sync(done)
        report = {
            "changed": len(done.plan.changes) - len(done.failed),
            "unchanged": done.plan.unchanged,
            "problems": [str(error) for error in done.errors[:_LINES_SHOWN]],
            "notices": list(done.notices),
            "failed": len(done.errors),
        }
        # A run that is limited to some topics leaves the step due for the others.
        return StepResult(report, complete=done.applied and not topology.limits and not done.errors)

    counts = ("changed", "unchanged")
    return run_if_due(flow, SyncStep.TOPIC_CONFIGS, ledger, run, dry_run=dry_run, at_once=at_once, counts=counts)


def gather_config_facts(
    topology: FlowTopology, source: ClusterAdmin, target: ClusterAdmin, named: Iterable[str] = ()
) -> ConfigFacts:
    """Read what a plan needs: a few requests for thousands of topics.

    Args:
        named: source topics that the configuration lists by name.

    Raises:
        ConfigurationError: the topology is limited to topics of which the flow selects none.
        MirrorError: a cluster cannot be reached.
    """
    listed = source.list_topics()
    selected = [topic for topic in listed if topology.replicates(topic)]
    # The number of partitions does not matter here.
    names = topology.name_table(dict.fromkeys(selected, 1))
    unusable = {finding.target for finding in names.findings if finding.fault in _UNUSABLE}
    errors = names.errors(str(topology.flow))
    unreadable: dict[str, MirrorError] = {
        topic: errors[topic] for topic in selected if names.targets[topic] in unusable and topic in errors
    }
    existing = set(target.list_topics())
    unreadable |= hidden_topics(source, filter(topology.replicates, named), selected)
    # Of a hidden topic, the missing permission is reported instead.
    if not unreadable:
        topology.refuse_empty_choice(listed)
    unreadable |= hidden_topics(target, (names.targets[topic] for topic in selected), existing)
    sources: dict[str, str] = {}
    for topic in selected:
        remote = names.targets[topic]
        if remote in existing and remote not in unusable:
            # If several sources merge into one target, the first by name provides the configs.
            sources.setdefault(remote, topic)
    source_configs = source.topic_configs(sources.values())
    target_configs = target.topic_configs(sources)
    for configs in (source_configs, target_configs):
        # A topic that vanished after it was listed was deleted.
        unreadable |= {
            name: error for name, error in configs.errors.items() if not isinstance(error, TopicMissingError)
        }
    known = existing | unreadable.keys()
    not_created = sum(names.targets[topic] not in known for topic in selected)
    return ConfigFacts(sources, source_configs, target_configs, unreadable, not_created)


def apply_configs(plan: ConfigPlan, target: ClusterAdmin) -> ConfigSync:
    """Change the target, without the changes that it rejects.

    Raises:
        MirrorError: the cluster as a whole cannot be reached.
    """
    changes = {change.topic: change for change in plan.changes}

    def attempt(wanted: Mapping[str, Configs], validate_only: bool) -> Mapping[str, MirrorError | None]:
        steps = {
            topic: [
                ConfigChange(step.name, step.operation, step.new)
                for step in changes[topic].steps
                if step.name in configs
            ]
            for topic, configs in wanted.items()
        }
        # Topics without changes are not sent.
        return dict.fromkeys(wanted) | target.alter_topic_configs(steps, validate_only=validate_only)

    wanted = {topic: {step.name: step.new for step in change.steps} for topic, change in changes.items()}
    done = done_without_refused(wanted, attempt)
    if is_unsupported(done.errors):
        kept = (
            f"cluster {target.cluster} does not support changes of topic configs: "
            f"{counted(len(changes), 'topic keeps its', 'topics keep their')} configs."
        )
        return ConfigSync(plan, applied=True, notices=(kept,))
    failed = [(changes[topic], error) for topic, error in done.errors.items() if error is not None]
    forgiven: dict[str, dict[str, MirrorError]] = {}
    for topic, refused in done.without.items():
        rules = {step.name: step.rule for step in changes[topic].steps}
        for name, error in refused.items():
            known = name not in INDISPENSABLE and rules[name] is not ConfigRule.OVERRIDE
            # Any other rejection concerns this topic, for example a value that contradicts another one.
            if not known or not refuses_value(name, error):
                failed.append((changes[topic], error))
            else:
                forgiven.setdefault(topic, {})[name] = error
    notices = Outcome(dict.fromkeys(forgiven), forgiven).notices(target.cluster)
    return ConfigSync(plan, applied=True, failed=tuple(failed), notices=tuple(notices))


def _log_sync(done: ConfigSync) -> None:
    flow, verb = done.plan.flow, "changes" if done.applied else "would change"
    for change in done.plan.changes[:_LINES_SHOWN]:
        _log.info("Flow %s %s %s.", flow, verb, change)
    if len(done.plan.changes) > _LINES_SHOWN:
        _log.info("... and %d more.", len(done.plan.changes) - _LINES_SHOWN)
    _log.info("%d topics unchanged.", done.plan.unchanged)
    for notice in done.notices:
        _log.warning("Flow %s: %s", flow, notice)
    for error in done.errors[:_LINES_SHOWN]:
        _log.error("Flow %s: %s", flow, error)
