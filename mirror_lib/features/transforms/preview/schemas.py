"""Keys and values with schema ids as JSON, for readers of a preview."""

from __future__ import annotations

import json
from functools import cached_property

from mirror_lib.errors import ConfigurationError, MirrorError
from mirror_lib.features.transforms.model import DataFormat, SchemaRegistry, TransformChain
from mirror_lib.features.transforms.preview.preview import Change
from mirror_lib.features.transforms.schema_use.registry_sides import access_of, registry_at
from mirror_lib.features.transforms.schemas import registry
from mirror_lib.features.transforms.schemas.avro import AvroCodec
from mirror_lib.features.transforms.schemas.protobuf import ProtobufCodec
from mirror_lib.features.transforms.schemas.wire import schema_id


class SchemaTexts:
    """Texts of keys and values by the schema registries of a chain.

    Registry errors and missing schemas are not reported here: what cannot be decoded stays bytes.
    """

    def __init__(self, chain: TransformChain) -> None:
        """Nothing is requested yet."""
        self._formats = dict(_formats(chain))
        self._source = _Codecs(chain.source_registry)
        # Without a target registry, schema ids stay those of the source.
        self._target = _Codecs(chain.target_registry or chain.source_registry)

    def text(self, side: Change, content: bytes | None, *, made: bool) -> str | None:
        """Return the JSON of a key or a value; None if it has no schema of the registry.

        Args:
            made: True if it is to be written, so that its schema id is one of the target.
        """
        chosen = self._formats.get(side)
        if chosen is None or content is None or schema_id(content) is None:
            return None
        codecs = self._target if made else self._source
        try:
            found = (codecs.avro if chosen is DataFormat.AVRO else codecs.protobuf).to_json(content)
            return json.dumps(found, ensure_ascii=False)
        except (MirrorError, ValueError, TypeError) as error:
            if isinstance(error, MirrorError) and error.retriable:
                # Avoid waiting for it again for each record.
                self._formats = {}
            return None


class _Codecs:
    """The readers of one registry; Protobuf's is loaded only if it is needed."""

    def __init__(self, settings: SchemaRegistry | None) -> None:
        self._settings = settings

    def _client(self) -> registry.SchemaRegistry:
        if self._settings is None:
            raise ConfigurationError("no schema registry is set.")
        return registry_at(access_of(self._settings))

    @cached_property
    def avro(self) -> AvroCodec:
        return AvroCodec(self._client())

    @cached_property
    def protobuf(self) -> ProtobufCodec:
        return ProtobufCodec(self._client())


def _formats(chain: TransformChain) -> list[tuple[Change, DataFormat]]:
    """Return the formats of sides that a registry decodes, by the first transform that decodes them."""
    return [
        (side, decoding.format)
        for transform in reversed(chain.transforms)
        for side, decoding in ((Change.KEY, transform.decode.key), (Change.VALUE, transform.decode.value))
        if decoding.format.needs_registry
    ]
