"""Rows that are passed between the stages of a Spark job."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "columns": ["RowColumns", "Slice", "by_place"],
        "reader_result": ["ReaderResult", "new_secret"],
        "layout": [
            "Int64s",
            "READ_DDL",
            "READ_SCHEMA",
            "SOURCE_COLUMN",
            "number_and_codec",
            "number_of",
            "place_of",
            "with_source",
        ],
    },
)
