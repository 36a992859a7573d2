"""Verification of transformed records: made again and compared."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "compare_rows": ["compare_bin", "find_bin"],
        "model": ["NumberedRange", "RefusedRecord", "RowVerifyJob", "first_refusal", "numbered_ranges"],
        "row_source": ["read_bin"],
    },
)
