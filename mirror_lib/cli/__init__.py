"""The `mirror` command. Features build their commands with the exported names.

A command reads its options, calls a function of a package below, and prints the result. No rule of the copy is
here.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "acl_rows": ["acl_table", "system_user"],
        "commands": ["command_group"],
        "confirmation": ["NoteOption", "YesOption", "ask_confirmation", "is_confirmed", "person"],
        "flow_frame": ["FlowCommand", "flow_command"],
        "flow_options": [
            "ConfigOption",
            "DryRunOption",
            "FlowOption",
            "MasterOption",
            "PartitionOption",
            "ROWS_SHOWN",
            "TasksOption",
            "TopicsOption",
            "capped_errors",
            "capped_table",
            "megabytes",
            "not_compared",
            "show_paths",
        ],
        "frame": ["begin_with"],
        "gaps": ["GapPartitionOption"],
        "written": ["ForceOption", "read_bytes", "write_file"],
        "output": ["ConsoleOutput", "JsonOption", "JsonOutput", "Output", "Progress", "report_errors"],
    },
)
