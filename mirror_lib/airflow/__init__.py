"""Airflow DAGs, operators and tasks of the project. Nothing else in `mirror_lib` imports Airflow."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "compatibility": ["get_parsing_context"],
    },
)
