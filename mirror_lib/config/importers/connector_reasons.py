"""Why a setting of a connector or of a Connect worker is not used in a file of this project."""

from __future__ import annotations

from mirror_lib.config.file import foreign
from mirror_lib.config.importers.mirror_maker1_reasons import reason
from mirror_lib.config.settings import CLIENT_SET, MM2_BY_NAME, WORKER_NAMES, WORKER_PREFIXES
from mirror_lib.topology import FlowId

_NO_CONNECT = "there are no Connect workers here"
_POSITIONS = (
    "positions there stand under the name of the connector; here they are kept in mm2-offsets.<source>.internal on the "
    "target, and docs/migration.md says how the old ones are taken over"
)
_OWN_CLIENTS = "MirrorMaker 2 makes its own clients, which do not take it from the worker"
_CONNECTOR = {
    "clusters": "connectors do not read it; the new file has its own",
    "tasks.max.enforce": "tasks.max is always kept",
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
        return "no client of MirrorMaker 2 gets it in this form: source.cluster.* and target.cluster.* count"
    if name in WORKER_NAMES or name.startswith((*WORKER_PREFIXES, "config.providers")):
        return "Connect takes it from the worker's file, and not from a connector"
    return "it is no setting of MirrorMaker 2: Connect ignored it, or a class of your own read it"


def client_reason(kind: str, name: str, flow: FlowId) -> str:
    """Return why a setting of a client inside a connector, or of the worker's producer, has no effect here."""
    if kind == "consumer.override":
        return (
            "Connect gives it to sink connectors only, so that MirrorMaker 2 never had it; "
            f"{flow}.source.consumer.{name} would reach its consumer"
        )
    if kind == "admin.override":
        return "Connect gives it to the reporters of sink connectors only"
    return reason(kind, name)


def worker_reason(name: str) -> str:
    """Return why a setting of the worker, which does not belong to its producer, is not used."""
    if name == "offset.storage.topic":
        return _POSITIONS
    if name.startswith(("consumer.", "admin.")):
        return _OWN_CLIENTS
    if name in CLIENT_SET:
        return "it connects the worker; the flow's connection to the target counts here"
    return _NO_CONNECT
