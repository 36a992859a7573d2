"""The DAG that hands a flow over to its failback flow once its source is back."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "dag": ["build_after_disaster_dags"],
    },
)
