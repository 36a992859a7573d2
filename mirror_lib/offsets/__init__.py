"""Offsets: the map from source to target, offset-syncs and checkpoints.

Ask it where a source offset is on the target, exactly or by MM2's rule. Pure arithmetic: it reads no topic and no
ledger.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "checkpoints": [
            "CheckpointOffsets",
            "MapTranslation",
            "Precision",
            "checkpoint_after",
            "translate",
            "translate_by_map",
        ],
        "group_standing": ["GroupReason", "IN_SYNC", "NOT_THIS_FLOWS", "is_behind", "why_not_in_sync"],
        "offset_map": ["LANDINGS", "Landing", "Lookup", "OffsetMap"],
        "ranges": ["unite"],
        "run_columns": ["RunColumns"],
        "runs": ["OffsetRun", "RunBuilder", "Segment", "decode", "encode", "merge"],
        "sync_store": ["LoadMode", "OffsetSyncStore"],
        "syncs": ["BEFORE_ALL", "EmissionState", "SyncPoint", "flush_syncs"],
    },
)
