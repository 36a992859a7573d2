"""Schema registries: schema ids in records, their schemas, and schemas that the target's registry lacks."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "avro": ["AvroCodec"],
        "avro_columns": ["avro_column"],
        "errors": ["SchemaFormatError", "SchemaMissingError", "SchemaRegistryError"],
        "identities": ["Identity", "IdentityPlan", "Registration", "Verdict"],
        "preflight": ["compare", "missing_guids", "register_missing", "subject_of_topic"],
        "protobuf": ["ProtobufCodec"],
        "protobuf_columns": ["fill", "protobuf_column"],
        "registry": ["SchemaRegistry"],
        "rest": ["BasicLogin", "RegistryAccess"],
        "typed_column": ["TypedColumn", "optional"],
        "wire": ["Place", "find_frame", "frame_bytes", "protobuf_frame", "schema_id"],
    },
)
