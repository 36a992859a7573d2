"""Who a client is and whom it trusts: TLS, SASL and key stores as Java's properties name them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "jaas": ["parse_jaas"],
        "kerberos": ["KerberosLogin", "missing_for_kerberos"],
        "login_check": ["login_errors"],
        "sasl": ["OAuthLogin", "PasswordLogin"],
        "security": ["Security", "read_security"],
    },
)
