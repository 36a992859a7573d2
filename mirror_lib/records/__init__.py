"""Raw record batches: reads a source's bytes, builds batches that a target accepts as a producer's own.

The entry point is `assemble`: it converts fetched bytes to batches that are ready to be stamped and produced. All
modules are pure: bytes in, bytes out. None of them has a connection.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "assemble": ["BatchAssembler"],
        "builder": ["largest_encoding", "rebuild"],
        "damage": ["measure_damage"],
        "header": [
            "ATTRIBUTES_AT",
            "BatchHeader",
            "CODEC_BITS",
            "CONTROL_BIT",
            "Codec",
            "DELETE_HORIZON_BIT",
            "HEADER",
            "HEADER_SIZE",
            "LOG_APPEND_TIME_BIT",
            "LOG_OVERHEAD",
            "MAGIC",
            "MAGIC_AT",
            "TRANSACTIONAL_BIT",
            "new_batch",
            "parse_header",
        ],
        "last_records": ["last_record_at", "LastRecord", "LastRecords", "find_last_records", "is_same", "is_same_copy"],
        "oversized": ["beyond_memory", "oversized_error", "record_beyond_memory"],
        "poison": ["POLICIES"],
        "ready": ["ReadyBatch"],
        "records": ["Record", "RecordError", "key_and_value", "read_records"],
        "rules": ["ANY_RECORD", "RecordRules"],
        "skipped": ["SkippedRecords", "Unit", "skipped_damage", "skipped_record"],
        "spans": ["Shown", "Span", "none_shown", "read_spans"],
        "split": ["halves", "skipped_batch", "readable"],
        "stamping": ["stamp"],
        "transactions": ["OpenTransaction", "TransactionCount"],
        "validation": ["sound_batches"],
        "varint": ["decode_varint", "encode_varint", "with_size"],
    },
)
