"""Drivers that start at once: a driver host, deferred copies, an archive of Spark's classes."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "driver_host_protocol": [
            "DRIVER_HOST_VARIABLE",
            "DriverRequest",
            "EXIT_CODE",
            "Greeting",
            "STREAMS",
            "code_stamp",
            "is_ours",
            "python_stamp",
            "receive",
            "send",
            "socket_address",
        ],
        "hosted_driver": ["NoDriverHostError", "greeting_of"],
    },
)
