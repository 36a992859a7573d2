"""Topic selection and naming: policies, filters, loops.

Ask it what a topic, group or partition is called on the other side, and whether a flow takes it. Pure: it reads and
calls nothing.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "access": ["Grant", "Operation", "Resource", "acls_operation", "resource_arguments", "without_covered"],
        "acls": ["ALL", "AclBinding", "AclPattern", "AclPermission", "AclResource", "READ", "WILDCARD", "WRITE"],
        "bounded_pattern": ["BoundedPattern", "SlowPatternError"],
        "filters": [
            "CONFIG_PROPERTIES_EXCLUDE",
            "ConfigPropertyFilter",
            "DefaultGroupFilter",
            "DefaultTopicFilter",
            "GroupFilter",
            "TopicFilter",
        ],
        "handovers": ["Handovers", "NO_HANDOVERS", "UNRESTRICTED"],
        "java_regex": [
            "PatternList",
            "Replacement",
            "compile_java",
            "compile_list",
            "compile_replacement",
            "with_dots",
        ],
        "java_types": ["Value", "ValueType", "parse_list", "parse_raw_boolean", "parse_value"],
        "loops": ["Loop", "find_loops"],
        "names": ["FlowId", "TopicPartition"],
        "pattern_time": ["limited_pattern_time"],
        "policy": [
            "DEFAULT_CLASS",
            "IDENTITY_CLASS",
            "IDENTITY_LIKE",
            "INTERNAL_SEPARATOR_ENABLED",
            "ReplicationPolicy",
            "SEPARATOR",
            "SOURCE_ALIAS",
            "TARGET_ALIAS",
            "keeps_names",
            "policy_for",
        ],
        "rename": ["NameFault", "NameTable", "RenameRules", "illegal_name"],
        "flow_topology": ["Exclusion", "FlowTopology", "ancestry", "hops", "shown_choice"],
    },
)
