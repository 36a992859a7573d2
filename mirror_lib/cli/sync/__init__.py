"""`mirror topics`, `configs`, `acls`, `groups` and `heartbeat`: plan, apply, status."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "topics": ["show_topics"],
    },
)
