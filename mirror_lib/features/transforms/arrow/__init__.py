"""Record batches as arrays and as Arrow, and back, for Spark and comparisons."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "decode_limits": ["DecodeLimits"],
        "record_blocks": ["RecordBlock", "read_blocks"],
        "read": ["ArrowPart", "read_arrow"],
        "records": ["OutgoingRows", "outgoing_rows"],
        "rows": ["CREATE_TIME", "InexactRowError", "KAFKA_SCHEMA", "LOG_APPEND_TIME", "NO_TIMESTAMP_TYPE"],
        "write": ["ArrowBatchBuilder"],
    },
)
