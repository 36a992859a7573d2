"""Comparing one range of two logs through the offset map. Pure."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "compare": ["RangeComparer"],
        "expected_offsets": ["MOST_ROWS", "ROW_BITS"],
        "inverted": ["copied_from", "inverse_check", "inverse_outcome", "inverse_runs"],
        "record_columns": ["Columns", "columns"],
        "tally": ["Spent", "verdict_of"],
    },
)
