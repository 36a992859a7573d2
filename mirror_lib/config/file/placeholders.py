"""Placeholders that a template left in a file: Kafka reads them as values."""

from __future__ import annotations

import re

#: `${NAME}` is not a variable of Kafka's, which have a provider and a colon; braces and angle brackets come from
#: templates.
_ANYWHERE = re.compile(
    r"\$\{[A-Za-z_][A-Za-z0-9_.]*\}|\{\{[^{}]*\}\}|\$\([A-Z_][A-Z0-9_]*\)|%\([A-Za-z_]\w*\)s|@@\w+@@"
)
#: In addresses and passwords; elsewhere they are a part of regexes (`(?<name>...)`). Event Hubs' user
#: `$ConnectionString` is none.
_BRACKETS = re.compile(r"<[A-Za-z][\w .-]*>|\$[A-Z_][A-Z0-9_]*\b|\{[A-Za-z][\w .-]*\}|\[[A-Z][A-Z_ -]+\]")
_BRACKETED = ("bootstrap.servers", "sasl.jaas.config", "password")


def placeholder_in(name: str, text: str) -> str | None:
    """Return the first placeholder in the value of a setting, None without one.

    Args:
        name: the setting's, with or without its prefix.
    """
    found = _ANYWHERE.search(text)
    if found is None and name.endswith(_BRACKETED):
        found = _BRACKETS.search(text)
    return None if found is None else found[0]


def advice_for(placeholder: str) -> str:
    """Return how to fill it in."""
    name = re.sub(r"\W+", "_", placeholder).strip("_").upper() or "NAME"
    return (
        f"fill in {placeholder} before the file is used (envsubst, helm template), or write ${{env:{name}}} with "
        "config.providers = env and config.providers.env.class = "
        "org.apache.kafka.common.config.provider.EnvVarConfigProvider"
    )
