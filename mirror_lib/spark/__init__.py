"""Start Spark jobs: spark-submit, Spark Connect, a warm driver host, the executors' archive."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "argument_file": ["expand", "shorten"],
        "class_archive": ["CLASS_ARCHIVE_VARIABLE", "write_class_archive"],
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
        "driver_host_protocol": [
            "DRIVER_HOST_VARIABLE",
            "DriverRequest",
            "EXIT_CODE",
            "Greeting",
            "STREAMS",
            "code_stamp",
            "current_umask",
            "is_ours",
            "python_stamp",
            "receive",
            "send",
            "socket_address",
        ],
        "executor_archive": ["executor_environment", "write_archive"],
        "hosted_driver": ["HostedDriver", "NoDriverHostError", "ask_for_driver", "greeting_of"],
        "java": ["find_java"],
        "job_arguments": ["CommandLine"],
        "settings": ["SPARK_SETTINGS", "environment_settings"],
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
