"""Kafka clusters: connections, logins, administration, internal topics, raw requests.

The only package that talks to brokers. Ask it for what a cluster has and does; it knows neither flows nor runs.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "broker_limits": ["VersionLimit", "version_limits"],
        "connection": ["Connection"],
        "leader_wait": ["LeaderWait"],
    },
)
