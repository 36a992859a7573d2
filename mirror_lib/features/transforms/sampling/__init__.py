"""Samples of a flow's records for previews of transforms."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "job": ["PreviewArguments", "PreviewRunner", "chain_of", "main", "read_result", "write_rows"],
        "sample": ["MOST_BYTES", "Sample", "SampleStart", "headers_of", "places_of", "read_sample"],
        "schema_sample": ["TopicSchemas", "sampled_schemas", "topics_with_schemas"],
    },
)
