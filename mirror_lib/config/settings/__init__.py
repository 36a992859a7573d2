"""The settings: names, types, defaults and meaning, declared once."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "definitions": ["Definition", "MM2_BY_NAME", "MM2_FLOW", "Scope", "TOP_LEVEL", "WORKER", "WORKER_BY_NAME"],
        "keys_of_transforms": [
            "CONNECT_TRANSFORMS",
            "CONVERTERS",
            "FLOW_PREFIXES",
            "OWN_TRANSFORMS",
            "PREDICATES",
            "PREFIX",
            "REGISTRY",
            "REGISTRY_KEYS",
            "SUB_KEYS",
            "is_connect_key",
            "is_transform_key",
        ],
        "kafka_names": ["APPLIED", "BY_CLIENT", "CLIENT_SET", "WORKER_NAMES", "WORKER_PREFIXES"],
        "feature_keys": ["feature_setting", "feature_settings", "flow_keys", "unusable_feature"],
        "mirror_keys": ["FLOW_KEYS", "LEDGER_URL", "OWN_BY_NAME", "TOP_KEYS", "parse_rename_list"],
        "rate_keys": ["CLUSTER_KEYS", "READ_RATE_LIMIT", "WRITE_RATE_LIMIT"],
        "sync_keys": ["CONFIGS_ALWAYS", "CONFIGS_DEFAULT", "CONFIGS_NEVER", "CONFIGS_OVERRIDE"],
        "values": ["KNOWN_CLASSES", "REQUEST_SIZE", "check_client_value", "check_value", "parse_request_size"],
    },
)
