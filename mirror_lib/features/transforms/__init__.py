"""Changes to records between the source and the target."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "arrow_values": ["array_of"],
        "model": [
            "DataFormat",
            "DecodeSettings",
            "Decoding",
            "Determinism",
            "FlowTransforms",
            "FunctionKind",
            "FunctionReference",
            "NO_TRANSFORMS",
            "RECORDS",
            "SOURCE_COLUMNS",
            "SchemaRegistry",
            "SelectStatement",
            "TARGET_COLUMNS",
            "Transform",
            "TransformChain",
            "members_of",
            "transforms_of",
        ],
        "record_mark": ["UntransformableRecordError", "mark", "read_mark", "refuse_record"],
        "tables": ["RoutedRangeRow", "RoutedRanges"],
        "settings": ["listed_names", "parse_transforms", "statement_files", "unlisted_problems"],
    },
)
