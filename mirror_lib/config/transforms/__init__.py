"""Transforms as set in a file, the project's own and Kafka Connect's."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "connect_transforms": ["CONVERTERS", "FLOW_PREFIXES", "TRANSFORMS"],
        "flow_transforms": ["TransformsReader", "describe_transforms", "transform_settings"],
    },
)
