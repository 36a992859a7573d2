"""The lag of flows, observed at one moment and stored, and metrics of all flows in Prometheus' format."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={"prometheus": ["CONTENT_TYPE", "render_metrics"]},
)
