"""Copies of transformed records: rows to batches, in transactions."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "failing_records": ["Failure", "Found", "OffsetRange", "failing_record", "named_record"],
        "model": ["FailedRecord", "RowJob", "first_stop", "reading_start"],
        "row_sink": ["finish_bin", "write_bin"],
        "row_source": ["read_bin"],
        "transactions": ["Transaction"],
    },
)
