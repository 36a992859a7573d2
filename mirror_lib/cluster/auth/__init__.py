"""Login and trust of clients: TLS, SASL and key stores, by the names of Java's properties."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "cloud_hosts": ["CloudHosts"],
        "jaas": ["parse_jaas"],
        "kerberos": ["missing_for_kerberos"],
        "login_check": ["login_errors"],
        "sasl": ["OAuthLogin"],
        "security": ["Security"],
        "security_properties": ["read_security"],
    },
)
