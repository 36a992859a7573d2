"""The base of the configuration's models, and their fields that are settings."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from mirror_lib.config.own_key import OWN, OwnKey


class Frozen(BaseModel):
    """An immutable model whose errors never show the input: it may hold secrets."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True, hide_input_in_errors=True)


def own(default: Any, meaning: str, **more: Any) -> Any:
    """A field of a model that is a setting; arguments as of `OwnKey`."""
    is_shown = more.pop("repr", True)
    extra: Any = {OWN: OwnKey(meaning, **more)}
    return Field(default, repr=is_shown, json_schema_extra=extra)
