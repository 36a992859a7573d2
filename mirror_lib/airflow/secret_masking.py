"""Secrets in Airflow tasks: providers may read them from Airflow, and Airflow masks them in every log line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import quote

from mirror_lib.airflow.compatibility import mask_secret
from mirror_lib.config.secrets.keys import is_secret
from mirror_lib.config.secrets.lookup_context import Surroundings, TaskValues, reading_in
from mirror_lib.config.settings.mirror_keys import LEDGER_URL

#: Values of login module options that are named like secrets but are not.
_NO_SECRETS = frozenset({"true", "false"})


@contextmanager
def task_secrets() -> Iterator[TaskValues]:
    """Within this context, configuration files resolve values of Airflow, and Airflow masks their secrets from then on.

    Only for tasks: the lookups go through the process that supervises one.
    """
    masked: set[str] = set()

    def mask(key: str, value: str, given: Sequence[str]) -> None:
        for text in secret_texts(key, value, given):
            if text not in masked:
                masked.add(text)
                mask_secret(text)

    values = TaskValues()
    with reading_in(Surroundings(task=values, on_secret=mask)):
        yield values


def secret_texts(key: str, value: str, given: Sequence[str]) -> Iterator[str]:
    """Yield the secret parts of a setting, in each form in which a log line may have them.

    Args:
        key: the setting.
        value: its value, with all variables replaced.
        given: the parts that came from providers.
    """
    for text in _secrets_in(key, value, given):
        if text.strip() and text.lower() not in _NO_SECRETS:
            yield from dict.fromkeys((text, text.strip(), quote(text, safe="")))


def _secrets_in(key: str, value: str, given: Sequence[str]) -> Iterator[str]:
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    from mirror_lib.cluster.auth.jaas import parse_jaas

    if key == LEDGER_URL:
        try:
            password = make_url(value.strip()).password
        except (ArgumentError, ValueError):
            yield from given
            return
        if password is not None:
            yield str(password)
    elif key.endswith("sasl.jaas.config"):
        yield value
        try:
            options = parse_jaas(value).options
        except ValueError:
            yield from given
            return
        yield from (text for name, text in options.items() if is_secret(name))
    else:
        yield value
        yield from given
