"""Properties that hold secrets. Separate from the models, which take longer to load than the ledger takes to open."""

from __future__ import annotations

_SECRET_WORDS = (
    *("password", "passwd", "pwd", "passphrase", "secret", "jaas", "token", "ssl.keystore.key", "credentials"),
    *("ssl.key.pem", "user.info", "access.key", "account.key", "api.key", "apikey", "private.key"),
)


def is_secret(key: str) -> bool:
    """Return True if values of this property must never be shown."""
    lowered = key.lower()
    return any(word in lowered for word in _SECRET_WORDS) and not lowered.endswith("endpoint.url")
