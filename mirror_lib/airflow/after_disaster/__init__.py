"""The DAG that brings a flow home once its source is back."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "dag": ["build_after_disaster_dags"],
    },
)
