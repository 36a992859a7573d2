"""Trigger forms and the conf of DAG runs: fields, values and their validation."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "conf": ["CheckedConf"],
        "fields": [
            "MOST",
            "USUAL_LOG_LEVEL",
            "WEEK_SECONDS",
            "bytes_per_second_field",
            "choice_field",
            "chosen_names",
            "chosen_topics",
            "chosen_whole",
            "flag_field",
            "limit_field",
            "literal",
            "log_level_field",
            "max_bytes_field",
            "names_field",
            "patterns_field",
            "put_form",
            "seconds_field",
            "tasks_field",
            "text_field",
            "topic_names",
            "topics_field",
        ],
        "values": ["BOUND", "FIRST_BOUND", "LINES"],
    },
)
