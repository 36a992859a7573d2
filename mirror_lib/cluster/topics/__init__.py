"""Internal topics in MM2's formats: positions, checkpoints, offset-syncs, heartbeats."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "checkpoints": ["CheckpointWriter", "read_checkpoints", "read_offset_syncs"],
        "internal": [
            "HeartbeatWriter",
            "OffsetSyncWriter",
            "PositionSnapshot",
            "PositionStore",
            "StoredPosition",
            "read_last_heartbeats",
        ],
        "mm2_formats": ["Checkpoint", "Heartbeat", "OffsetSync"],
        "positions": [
            "ClusterPair",
            "NOTHING_COPIED",
            "OmittedRange",
            "Position",
            "PositionKeys",
            "PositionState",
            "Route",
            "SOURCE_CONNECTOR",
            "encode_value",
            "partition_for",
        ],
        "reader": ["HiddenRecordsError"],
        "records": ["RecordPlace"],
    },
)
