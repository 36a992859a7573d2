"""One copy task: fetch from the source's leaders, produce to the target's, in order, once."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "assembler": ["Assembler", "Part"],
        "fetcher": ["Memory", "SourceReader"],
        "follower_fetch": ["ReadReplicas"],
        "open_copies": ["OpenCopies"],
        "open_positions": [
            "is_own_transactional_id",
            "names_of_flow",
            "open_position",
            "open_position_of",
            "transactional_id",
            "transactions_of",
        ],
        "partition_progress": ["PartitionCopy"],
        "poison_records": ["Omissions"],
        "position_flush": ["PositionFlush"],
        "producer": ["TargetWriter"],
        "producer_state": ["SEQUENCES"],
        "result_rows": ["RESULT_DDL", "from_arrow", "to_arrow"],
        "task": ["copy_attempt", "copy_bin", "for_attempt", "from_earlier_attempt"],
        "task_group": ["Background", "internal_error"],
        "throttle": ["Throttle", "task_bytes_per_second"],
    },
)
