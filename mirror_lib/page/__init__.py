"""The page "Replication" inside Airflow: what the ledger knows, as pictures, tables, metrics and a few actions."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "plugin": ["ReplicationPlugin"],
    },
)
