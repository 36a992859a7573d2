"""Heartbeats: emitted and checked."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "due": ["due_pairs", "note_emitted"],
        "flow": ["EmittedHeartbeat", "HeartbeatCheck", "HeartbeatEmitter", "check_flow_heartbeats", "emit_heartbeats"],
        "rules": [
            "HeartbeatState",
            "UpstreamHeartbeat",
            "describe",
            "emitting_flows",
            "emitting_kinds",
            "heartbeats_topic",
            "mistaken_heartbeats",
        ],
    },
)
