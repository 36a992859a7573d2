"""Connect's converters: bytes to values and back."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "converters": ["decode", "encode"],
    },
)
