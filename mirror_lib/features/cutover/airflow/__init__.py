"""The DAG of cutovers, with its questions to operators."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "dag": ["build_cutover_dags"],
    },
)
