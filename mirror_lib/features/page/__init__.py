"""The page "Replication" inside Airflow: the content of the ledger as graphs, tables, metrics and a few actions."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "plugin": ["ReplicationPlugin"],
    },
)
