"""Secrets in Airflow tasks: read from Airflow, and masked in every log line.

`${airflow:...}` of a configuration file is resolved by Airflow's own calls, so that all its secrets backends work.
Nothing is cached between tasks: a change takes effect with the next task.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import quote

from mirror_lib.airflow.compatibility import (
    AirflowException,
    AirflowNotFoundException,
    AirflowRuntimeError,
    BaseHook,
    ErrorType,
    Variable,
    mask_secret,
)
from mirror_lib.config.secrets.airflow_values import ConnectionValues, Reference
from mirror_lib.config.secrets.errors import ProviderError
from mirror_lib.config.secrets.keys import is_secret
from mirror_lib.config.secrets.lookup_context import Surroundings, reading_in
from mirror_lib.config.settings.mirror_keys import LEDGER_URL
from mirror_lib.errors import TransientError

#: Errors that a retry cannot fix.
_REFUSALS = frozenset({ErrorType.CONNECTION_NOT_FOUND, ErrorType.VARIABLE_NOT_FOUND, ErrorType.PERMISSION_DENIED})
#: Values of login module options that are named like secrets but are not.
_NO_SECRETS = frozenset({"true", "false"})


class TaskLookups:
    """Airflow's connections and variables, each read once."""

    def __init__(self) -> None:
        #: Values resolved so far.
        self.found: dict[Reference, str] = {}
        self._connections: dict[str, ConnectionValues] = {}

    def value(self, reference: Reference) -> str:
        """See `AirflowLookups`; raises `TransientError` if Airflow does not respond, which is not an error of the
        file.
        """
        if reference not in self.found:
            self.found[reference] = _variable(reference.name) if reference.field is None else self._field(reference)
        return self.found[reference]

    def _field(self, reference: Reference) -> str:
        if reference.name not in self._connections:
            self._connections[reference.name] = _connection(reference.name)
        return self._connections[reference.name].value(reference)


@contextmanager
def task_secrets() -> Iterator[TaskLookups]:
    """Within this context, configuration files resolve values of Airflow, and Airflow masks their secrets from then on.

    Only for tasks: the lookups go through the process that supervises one.
    """
    masked: set[str] = set()

    def mask(key: str, value: str, given: Sequence[str]) -> None:
        for text in secret_texts(key, value, given):
            if text not in masked:
                masked.add(text)
                mask_secret(text)

    lookups = TaskLookups()
    with reading_in(Surroundings(lookups, mask)):
        yield lookups


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


def _connection(name: str) -> ConnectionValues:
    try:
        found = BaseHook.get_connection(name)
    except AirflowNotFoundException:
        raise ProviderError(f"Airflow has no connection {name}, or the task has no permission to read it") from None
    except (AirflowRuntimeError, AirflowException, PermissionError) as error:
        # The text comes from a secrets backend and may contain the secret.
        raise _not_given(f"the connection {name}", error) from None
    return ConnectionValues(
        login=found.login,
        password=found.password,
        host=found.host,
        port=found.port,
        schema=found.schema,
        extra=found.extra_dejson,
    )


def _variable(name: str) -> str:
    try:
        return str(Variable.get(name))
    except (KeyError, AirflowRuntimeError, AirflowException, PermissionError) as error:
        raise _not_given(f"the variable {name}", error) from None


def _not_given(what: str, error: Exception) -> ProviderError | TransientError:
    """Return an error of the file if Airflow does not have the value or denies it to the task."""
    if isinstance(error, AirflowRuntimeError) and error.error.error not in _REFUSALS:
        return TransientError(
            f"Airflow did not return {what} ({error.error.error.value}).",
            action="Usually transient. If it persists, check Airflow's API server and its secrets backend.",
        )
    return ProviderError(f"Airflow did not return {what} ({type(error).__name__})")
