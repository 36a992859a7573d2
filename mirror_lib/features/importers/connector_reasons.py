"""Why a setting of a connector or of a Connect worker is not used in a file of this project."""

from __future__ import annotations

from mirror_lib.config.file.unknown_names import foreign
from mirror_lib.config.settings.kafka_names import CLIENT_SET, WORKER_NAMES, WORKER_PREFIXES
from mirror_lib.config.settings.mm2_keys import MM2_BY_NAME
from mirror_lib.features.importers.mirror_maker1_reasons import reason
from mirror_lib.topology.names import FlowId

_NO_CONNECT = "there are no Connect workers here"
_POSITIONS = (
    "positions are stored there under the connector name; here they are stored in mm2-offsets.<source>.internal on "
    "the target, and docs/migration.md explains how to take over the old ones"
)
_OWN_CLIENTS = "MirrorMaker 2 creates its own clients, which do not read it from the worker"
_CONNECTOR = {
    "clusters": "connectors do not read it; the new file has its own providers",
    "tasks.max.enforce": "tasks.max is always enforced",
    "connector.client.config.override.policy": _NO_CONNECT,
    "connector.plugin.version": _NO_CONNECT,
}


def connector_reason(name: str) -> str:
    """Return why a connector's setting, which belongs to no client, is not used."""
    if name in _CONNECTOR:
        return _CONNECTOR[name]
    if name in MM2_BY_NAME and MM2_BY_NAME[name].instead:
        return MM2_BY_NAME[name].instead
    sentence = foreign(name)
    if sentence is not None:
        return sentence
    if name in CLIENT_SET:
        return "no client of MirrorMaker 2 reads it in this form: source.cluster.* and target.cluster.* are used"
    if name in WORKER_NAMES or name.startswith((*WORKER_PREFIXES, "config.providers")):
        return "Connect reads it from the worker's file, not from a connector"
    return "it is not a setting of MirrorMaker 2: Connect ignored it, or a custom class read it"


def client_reason(kind: str, name: str, flow: FlowId) -> str:
    """Return why a setting of a client inside a connector, or of the worker's producer, has no effect here."""
    if kind == "consumer.override":
        return (
            "Connect passes it only to sink connectors, so MirrorMaker 2 never received it; "
            f"{flow}.source.consumer.{name} would reach its consumer"
        )
    if kind == "admin.override":
        return "Connect passes it only to the reporters of sink connectors"
    return reason(kind, name)


def worker_reason(name: str) -> str:
    """Return why a setting of the worker, which does not belong to its producer, is not used."""
    if name == "offset.storage.topic":
        return _POSITIONS
    if name.startswith(("consumer.", "admin.")):
        return _OWN_CLIENTS
    if name in CLIENT_SET:
        return "it configures the worker's connection; the flow's connection to the target is used here"
    return _NO_CONNECT
