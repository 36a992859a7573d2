"""Convert connectors of MirrorMaker 2 to one file of this project. Pure; no I/O.

Every input setting is in the output: as a line, or as a comment with the reason why it has no effect here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from mirror_lib.features.importers.connector_flows import cluster_lines, plan_flows
from mirror_lib.features.importers.connector_text import connectors_file
from mirror_lib.features.importers.model import ConnectCluster, Connector
from mirror_lib.features.importers.oauth_options import STRIMZI_HANDLER, strimzi_oauth
from mirror_lib.features.importers.questions import Answers, Question
from mirror_lib.features.importers.variables import Variables
from mirror_lib.features.importers.written_file import Listed, Placed

DEFAULT_SECRETS_FOLDER = "/etc/mirror/secrets"
_HANDLER, _JAAS = "sasl.login.callback.handler.class", "sasl.jaas.config"

#: Parses the options of the login module of a `sasl.jaas.config`; raises ValueError if it has none.
JaasOptions = Callable[[str], Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class ImportedConnectors:
    """The new file.

    Attributes:
        text: ASCII, ready to be written; it may hold secrets.
        notes: for the reader of the file.
        questions: open ones; as long as there are any, no flow of the file is enabled.
    """

    text: str
    placed: tuple[Placed, ...]
    listed: tuple[Listed, ...]
    notes: tuple[str, ...]
    questions: tuple[Question, ...]


def import_connectors(
    clusters: Sequence[ConnectCluster],
    answers: Answers,
    *,
    jaas_options: JaasOptions,
    secrets_folder: str = DEFAULT_SECRETS_FOLDER,
) -> ImportedConnectors:
    """Convert connectors to a file with one flow for each pair of clusters.

    Raises:
        ConfigurationError: a connector or an answer cannot be used.
    """
    notes = [note for cluster in clusters for note in cluster.notes]
    clusters = [_with_known_logins(each, answers, jaas_options, notes) for each in clusters]
    flows = plan_flows(clusters, answers)
    worker = {name: value for each in clusters if each.worker for name, value in each.worker.settings.items()}
    variables = Variables(worker, secrets_folder, answers)
    of_clusters = variables.replace(list(cluster_lines(flows, answers)))
    for flow in flows:
        flow.lines[:] = variables.replace(flow.lines)
    if any(each.worker is None for each in clusters):
        notes.append(
            "No worker file was passed: the producer of the data is assumed to have the target's connection, and "
            "the worker's converters to keep bytes unchanged."
        )
    answers.check_used()
    listed = [each for cluster in clusters for each in cluster.listed]
    listed += [each for flow in flows for each in flow.listed]
    listed = list(dict.fromkeys(listed))
    providers = variables.provider_lines()
    questions = tuple(answers.open.values())
    notes = list(dict.fromkeys(notes))
    text = connectors_file(flows, of_clusters, providers, variables.prerequisites(), listed, notes, questions)
    placed = (*providers, *of_clusters, *(line for flow in flows for line in flow.lines))
    return ImportedConnectors(text, placed, tuple(listed), tuple(notes), questions)


def _with_known_logins(
    cluster: ConnectCluster, answers: Answers, jaas_options: JaasOptions, notes: list[str]
) -> ConnectCluster:
    connectors = tuple(_with_known_login(each, answers, jaas_options, notes) for each in cluster.connectors)
    return replace(cluster, connectors=connectors)


def _with_known_login(connector: Connector, answers: Answers, jaas_options: JaasOptions, notes: list[str]) -> Connector:
    """Return the same connector, with a login by Kafka's own client instead of Strimzi's OAuth library."""
    config = dict(connector.config)
    for name in list(config):
        if not name.endswith(_HANDLER) or config[name].strip() != STRIMZI_HANDLER:
            continue
        prefix = name.removesuffix(_HANDLER)
        try:
            options = jaas_options(config.get(f"{prefix}{_JAAS}", ""))
        except ValueError:
            options = {}
        alias = config.get(f"{prefix}alias", prefix.rstrip("."))
        native = strimzi_oauth(options, f"the login of {alias}", alias, answers)
        del config[name]
        config.pop(f"{prefix}{_JAAS}", None)
        config |= {prefix + key: value for key, value in native.settings.items()}
        notes += native.notes
    return replace(connector, config=config)
