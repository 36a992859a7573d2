"""Command lines of the Spark jobs: a frozen dataclass declares each argument once, for the job and all that start it.

    @dataclass(frozen=True, slots=True)
    class CopyArguments(CommandLine):
        program, description = "copy.py", "Copy a flow."
        flow: Annotated[str, "name of the flow"]
        tasks: Annotated[int | None, "maximum number of Spark tasks"] = None

A field without a default is a required argument. Types: str, int, float, Path and an Enum of strings, each also with
None, which is then the default; bool for a flag, with the default False; `tuple[str, ...]` for an argument that may be
repeated.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, Field, fields
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Self, get_args, get_origin, get_type_hints

from mirror_lib.type_hints import kind_of

if TYPE_CHECKING:
    from _typeshed import DataclassInstance as _Dataclass
else:
    _Dataclass = object


class CommandLine(_Dataclass):
    """Base of the arguments of a job."""

    __slots__ = ()
    program: ClassVar[str]
    description: ClassVar[str]

    @classmethod
    def parse(cls, argv: Sequence[str]) -> Self:
        """Parse a command line without the program's name; an invalid one ends the process with exit code 2."""
        parser = argparse.ArgumentParser(prog=cls.program, description=cls.description)
        for field, kind, about, choices in _declared(cls):
            settings: dict[str, Any] = {"help": about}
            if kind is bool:
                settings |= {"action": "store_true"}
            elif kind is tuple:
                settings |= {"action": "append", "default": []}
            elif field.default is MISSING:
                settings |= {"type": kind, "required": True}
            else:
                settings |= {"type": kind, "default": field.default}
            if choices:
                settings |= {"choices": choices, "type": str}
            parser.add_argument(_option(field), **settings)
        found = vars(parser.parse_args(argv))
        return cls(**{field.name: _value(kind, found[field.name]) for field, kind, _, _ in _declared(cls)})

    def command_line(self) -> list[str]:
        """The inverse of `parse`. `=` keeps a value with a leading dash from being parsed as an option."""
        words = []
        for field in fields(self):
            value = getattr(self, field.name)
            if value is True:
                words.append(_option(field))
            elif value != field.default:
                words += [f"{_option(field)}={_text(each)}" for each in (value if type(value) is tuple else (value,))]
        return words


def _declared(arguments: type[CommandLine]) -> Iterator[tuple[Field[Any], type, str, Sequence[str]]]:
    """Each field with its type (as `field_types`), its meaning and its allowed values."""
    hints, kinds = get_type_hints(arguments, include_extras=True), field_types(arguments)
    for field in fields(arguments):
        _, about, *choices = get_args(hints[field.name])
        kind = kinds[field.name]
        if issubclass(kind, Enum):
            choices = [[each.value for each in kind]]
        yield field, kind, about, choices[0] if choices else ()


def field_types(values: type[_Dataclass]) -> dict[str, type]:
    """The type of each field of a dataclass, without None; `tuple` if it has several values."""
    hints = get_type_hints(values)
    kinds = {field.name: kind_of(hints[field.name])[0] for field in fields(values)}
    return {name: get_origin(kind) or kind for name, kind in kinds.items()}


def _option(field: Field[Any]) -> str:
    return "--" + field.name.replace("_", "-")


def _value(kind: type, found: Any) -> Any:
    return kind(found) if found is not None and issubclass(kind, (tuple, Enum)) else found


def _text(value: object) -> str:
    if isinstance(value, Enum):
        return str(value.value)
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)
