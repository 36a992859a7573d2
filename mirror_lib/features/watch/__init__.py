"""Decides when new records on a source start a run of a flow (`mirror.schedule = on-new-records`)."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={"poller": ["FilePoller", "Start"]},
)
