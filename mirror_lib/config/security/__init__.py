"""Security settings of clients: settings that only Java supports, and contradictions."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "check": ["security_problems", "uses_kerberos"],
        "cloud_classes": [
            "AWS_MSK_IAM",
            "AZURE_LOGIN_HANDLERS",
            "GOOGLE_LOGIN_HANDLER",
            "MECHANISMS",
            "MSK_LOGIN_HANDLER",
        ],
        "java_only": ["java_only_problem"],
        "tls": ["TlsVersions", "TlsVersionsError", "tls_versions"],
    },
)
