"""Login and trust of clients: TLS, SASL and key stores, by the names of Java's properties."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "jaas": ["JaasEntry", "parse_jaas"],
        "librdkafka_build": ["librdkafka_accepts"],
        "sasl": ["HostRule", "PreparedLogin", "login_reader", "read_sasl"],
        "sasl_exchange": ["OwnExchange", "OwnTokens", "Step", "refused_login"],
        "security": ["Security"],
        "security_properties": ["read_security"],
        "tls": ["Tls", "read_tls"],
    },
)
