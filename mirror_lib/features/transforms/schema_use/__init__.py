"""Schema ids of records, looked up on one registry and registered on the other."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "preflight": [
            "Finding",
            "Lookalike",
            "SIDES",
            "SchemaPreflight",
            "SchemaUse",
            "SideUses",
            "TopicSample",
            "decoded_formats",
            "used_schemas",
        ],
        "registry_answers": ["Registries", "ask", "register", "registries_of", "written_by"],
        "registry_sides": [
            "SchemaRenumbering",
            "SideCodec",
            "SideReader",
            "SideRenumbering",
            "access_of",
            "column_of",
            "reader_of",
            "registry_at",
        ],
    },
)
