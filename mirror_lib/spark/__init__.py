"""Start Spark jobs: spark-submit, Spark Connect.

Ask it to run a job's command line. It neither imports PySpark nor knows what a job does.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "argument_file": ["expand", "shorten"],
        "class_archive": ["CLASS_ARCHIVE_VARIABLE", "QUIETLY"],
        "cluster_check": ["cluster_notes"],
        "connect_server": [
            "ConnectAddress",
            "DEFAULT_PORT",
            "END_WITH_INPUT_VARIABLE",
            "REMOTE_VARIABLE",
            "SCHEME",
            "is_connect",
            "shared_session_id",
        ],
        "java": ["find_java"],
        "job_arguments": ["CommandLine"],
        "settings": ["SPARK_SETTINGS"],
        "submit": [
            "LOCAL_MASTER",
            "LOCAL_SETTINGS",
            "checkout_path",
            "find_spark_home",
            "job_file",
            "job_module",
            "runs_here",
            "spark_defaults",
            "spark_submit",
            "submit_settings",
        ],
    },
)
