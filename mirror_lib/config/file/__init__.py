"""The properties file: syntax, keys, typed values, and every problem with its line."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "addresses": ["USER_INFORMATION", "AddressError", "parse_addresses"],
        "ambiguous_names": ["unclear_names"],
        "check": ["hidden_cut_keys", "key_problems"],
        "comments": ["without_comment"],
        "derive": [
            "ENABLED",
            "FileSettings",
            "FlowSettings",
            "OLD_NAMES",
            "Settings",
            "TOP_LEVEL",
            "clusters",
            "flow_settings",
            "named_flows",
            "pairs_of_each_cluster",
            "selected_flows",
            "top_level",
        ],
        "keys": ["ARROW"],
        "known_classes": ["FOREIGN_CLASSES", "class_advice"],
        "other_formats": ["foreign_format"],
        "problems": ["InvalidConfigurationError", "describe", "in_order"],
        "properties": [
            "Entry",
            "PropertiesFile",
            "byte_order_mark",
            "parse_properties",
            "read_properties",
        ],
        "served": ["served_files"],
        "stamps": ["FileStamp", "are_unchanged"],
        "typed": ["flow_config"],
        "unknown_names": ["foreign", "foreign_names"],
        "whole_file": [
            "cluster_problems",
            "flow_problems",
            "nothing_enabled",
            "provider_problems",
            "selection_problems",
        ],
    },
)
