"""Classes named in a configuration: Kafka's by their Java names, others by their Python path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TypeVar

from mirror_lib.errors import ConfigurationError

_T = TypeVar("_T")
_KAFKA = "org.apache.kafka."


def load_class(name: str, known: Mapping[str, type[_T]], base: type[_T], key: str) -> Callable[[Mapping[str, str]], _T]:
    """The class of a setting, ready to be called with its options.

    Args:
        name: as in the file.
        known: the project's classes by their Java names.
        base: the required base class.
        key: the setting, for error messages.

    Raises:
        ConfigurationError: the class does not exist, or has another base; calling the result raises it if the
            constructor fails.
    """
    kind = known.get(name) or _import_class(name, known, base, key)

    def build(options: Mapping[str, str]) -> _T:
        try:
            return kind(options)  # type: ignore[call-arg]
        except ConfigurationError:
            raise
        except Exception as error:
            raise ConfigurationError(
                f"{key}: {name} could not be created: {type(error).__name__}: {error}.",
                action="It is called with one argument, the mapping of its settings.",
            ) from error

    return build


def _import_class(name: str, known: Mapping[str, type[_T]], base: type[_T], key: str) -> type[_T]:
    module, dot, attribute = name.rpartition(".")
    base_path = f"{base.__module__}.{base.__name__}"
    kafkas = [each for each in known if each.startswith(_KAFKA)]
    choices = f"Use {' or '.join(kafkas)}, or the dotted path of a Python class derived from {base_path}."
    if not dot:
        raise ConfigurationError(f"{key}: {name!r} is not the full name of a class.", action=choices)
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(f"{key}: class {name} does not exist ({error}).", action=choices) from error
    if not (isinstance(found, type) and issubclass(found, base)):
        raise ConfigurationError(f"{key}: {name} is not a {base.__name__}.", action=choices)
    return found
