"""Placeholders that a template left in a file: Kafka reads them as values."""

from __future__ import annotations

import re

#: `${NAME}` is not a variable of Kafka's, which have a provider and a colon; braces and angle brackets come from
#: templates.
_ANYWHERE = re.compile(
    r"\$\{[A-Za-z_][A-Za-z0-9_.]*\}|\{\{[^{}]*\}\}|<%=?[^%]*%>|\$\([A-Z_][A-Z0-9_]*\)|%\([A-Za-z_]\w*\)s|@@\w+@@|#\{\w+\}#?"
)
#: In addresses and passwords; elsewhere they are a part of regexes (`(?<name>...)`). Event Hubs' user
#: `$ConnectionString` is none.
_BRACKETS = re.compile(
    r"<[A-Za-z][\w .-]*>|\$[A-Z_][A-Z0-9_]*\b|\{[A-Za-z][\w .-]*\}|\[[A-Z][A-Z_ -]+\]"
    r"|\b(?:YOUR|REPLACE|CHANGE|INSERT)[_-][A-Z_-]*[A-Z]\b"
)
_BRACKETED = ("bootstrap.servers", "sasl.jaas.config", "password")
#: Only where a value is invalid anyway: in words of capitals, between other marks.
_IN_INVALID = re.compile(
    r":[A-Z][A-Z0-9_]+:|%[A-Z][A-Z0-9_]+%|__[A-Z][A-Z0-9_]*__|@[A-Z][A-Z0-9_]*@|\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b"
    r"|\.\.\.|(?<=:)(?:port|PORT)\b"
)


def placeholder_in(name: str, text: str, *, is_invalid: bool = False) -> str | None:
    """Return the first placeholder in the value of a setting, None without one.

    Args:
        name: the setting's, with or without its prefix.
        is_invalid: what looks like a placeholder is one, because the value is none.
    """
    found = _ANYWHERE.search(text)
    if found is None and (is_invalid or name.endswith(_BRACKETED)):
        found = _BRACKETS.search(text)
    if found is None and is_invalid:
        found = _IN_INVALID.search(text)
    return None if found is None else found[0]


def advice_for(placeholder: str | None) -> str:
    """Return how to fill it in.

    Args:
        placeholder: None if it must not be shown.
    """
    what = "the placeholder" if placeholder is None else placeholder
    name = re.sub(r"\W+", "_", placeholder or "PASSWORD").strip("_").upper() or "NAME"
    return (
        f"fill in {what} before the file is used (envsubst, helm template), or write "
        f"{'a variable such as ' if placeholder is None else ''}${{env:{name}}} with "
        "config.providers = env and config.providers.env.class = "
        "org.apache.kafka.common.config.provider.EnvVarConfigProvider"
    )
