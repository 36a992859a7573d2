"""Loads libraries of cloud services only for logins that need them, and keeps them from logging secrets."""

from __future__ import annotations

import importlib
import logging
from types import ModuleType

from mirror_lib.errors import ConfigurationError, Where

#: Each logs requests or responses with credentials at `DEBUG`.
_TALKATIVE = ("botocore", "boto3", "urllib3", "google.auth", "msal", "azure")


def load_library(module: str, package: str, extra: str, where: Where) -> ModuleType:
    """Return a module of a cloud service's library.

    Raises:
        ConfigurationError: the library is not installed; the error names the extra to install.
    """
    for name in _TALKATIVE:
        logger = logging.getLogger(name)
        logger.setLevel(max(logger.level, logging.INFO))
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ConfigurationError(
            f"the login needs the Python package {package}, which cannot be imported "
            f"({error.name or 'an import fails'}).",
            where=where,
            action=f"Install batch-mirror[{extra}] where runs are planned and on Spark's executors (docs/clouds.md).",
        ) from None
