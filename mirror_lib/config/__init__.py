"""Configuration: MM2's properties file with the project's own settings, as typed flows.

Ask it for the flows of a file, with every problem of the file, and where a value comes from. It never asks a cluster.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "data_plane": ["FlowChains", "NO_CHAIN", "TopicChain"],
        "copy_settings": ["CopySettings", "PoisonPolicy"],
        "first_start": ["EARLIEST", "FirstStarts", "first_starts", "parse_first_start", "parse_time"],
        "gc_pause": ["collections_paused"],
        "loader": [
            "InvalidConfigurationError",
            "ReadablePart",
            "enabled_flow",
            "explain",
            "explain_with_transforms",
            "load",
            "load_flow",
            "load_readable",
        ],
        "local_state": ["CONFIG_VARIABLE", "STATE_DIR_VARIABLE", "local_config", "project_root", "state_dir"],
        "model": [
            "ClientSettings",
            "AirflowExecution",
            "ExistingTarget",
            "Fencing",
            "FirstStart",
            "FlowClients",
            "FlowConfig",
            "GroupMetadata",
            "GroupTranslation",
            "IsolationLevel",
            "MirrorConfig",
            "OffsetSyncsLocation",
            "Problem",
            "Provenance",
            "Rename",
            "Severity",
            "UncommittedPartitions",
        ],
        "name_patterns": [
            "NamePattern",
            "excludes_by_name",
            "named_groups",
            "named_topics",
            "plain_names",
            "supposed_groups",
            "supposed_topics",
        ],
        "named_exclusions": ["about_excluded", "about_excluded_groups"],
        "schedule": ["longest_interval_seconds", "parse_interval", "parse_schedule"],
        "transforms_reader": ["connect_settings", "own_settings"],
        "topology": [
            "config_property_filter",
            "flow_topology",
            "group_filter",
            "loop_advice",
            "loops",
            "offset_syncs_topic",
            "quarantine_topic",
            "replication_policy",
        ],
    },
)
