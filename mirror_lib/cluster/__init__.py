"""Kafka clusters: connections, logins, administration, and raw batches."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "broker_limits": ["VersionLimit", "version_limits"],
        "connection": ["Connection"],
        "leader_wait": ["LeaderWait"],
    },
)
