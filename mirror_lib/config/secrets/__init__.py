"""Secrets: config providers, lookups, and masking."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "airflow_provider": ["AirflowSecretProvider"],
        "airflow_values": ["ConnectionValues", "Reference", "hand_over"],
        "errors": ["ProviderError"],
        "keys": ["is_secret"],
        "lookup_context": ["Surroundings", "looking_only", "reading_in", "surroundings", "without_lookups"],
        "masking": ["masked_text", "printable_value"],
        "providers": ["ConfigProvider", "REGISTRY", "Resolver", "files_read", "make_providers"],
    },
)
