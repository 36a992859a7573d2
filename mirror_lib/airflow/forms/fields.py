"""Fields that several trigger forms share, and reading their values inside a task."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from mirror_lib.airflow.compatibility import DAG, Param
from mirror_lib.airflow.forms.values import JAVA_REGEX
from mirror_lib.config.model import FlowConfig
from mirror_lib.errors import ConfigurationError
from mirror_lib.markdown_text import is_linked, markdown_code
from mirror_lib.printable import printable
from mirror_lib.spark.job_arguments import field_types

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
#: The default log level.
USUAL_LOG_LEVEL = "INFO"
#: A pattern that is a topic's name; a dot between words is taken literally.
_NAME = re.compile(r"(?:[A-Za-z0-9_-]|\\?\.)+")
#: Maximum number of names or expressions in one field, and of characters in each: a topic's name has up to 249.
_MOST_NAMES, _LONGEST = 10_000, 1_000
MOST_TASKS = 10_000
YEAR_SECONDS, WEEK_SECONDS = 365 * 86_400, 7 * 86_400
#: The largest whole number that browsers and JSON represent exactly.
MOST = 2**53 - 1


#: Characters with a meaning in Markdown.
_SIGNS = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~&])")


def literal(text: str) -> str:
    """Return a text unchanged, escaped as Markdown for the description of a field.

    Bold, not code: in Airflow 3.3 the background of code covers the line above this small text. A text that would
    become a link is code nevertheless.
    """
    shown = printable(" ".join(text.split()))
    if is_linked(shown):
        return markdown_code(shown)
    escaped = _SIGNS.sub(r"\\\1", shown)
    return f"**{escaped}**"


def put_form(dag: DAG, form: Mapping[str, Param]) -> None:
    """Give a DAG its form, after its tasks.

    A task made later deep-copies the whole form, once for each of its classes: half of the time to make a DAG. It does
    not need to, since Airflow merges the forms of the DAG and of the task when the task runs.
    """
    dag.params.update(form)


def flag_field(*, title: str, section: str, default: bool = False, **text: str) -> Param:
    """Return a switch.

    Args:
        text: `description` or `description_md`; so for all fields.
    """
    return Param(default, type="boolean", title=title, section=section, **text)


def choice_field(
    default: str,
    choices: Iterable[str],
    *,
    title: str,
    section: str,
    shown: Mapping[str, str] | None = None,
    **text: str,
) -> Param:
    """Return a field with one of several values.

    Args:
        shown: what the form shows for each value, if not the value.
    """
    display = {} if shown is None else {"values_display": {str(each): label for each, label in shown.items()}}
    # Plain strings: Airflow stores the form as JSON.
    values = [str(each) for each in choices]
    return Param(str(default), type="string", enum=values, title=title, section=section, **display, **text)


def text_field(*, title: str, section: str, default: str | None = None, **schema: Any) -> Param:
    """Return a field for one text. It may be null: Airflow's form cannot be submitted while another text is empty."""
    return Param(default, type=["null", "string"], title=title, section=section, **schema)


def limit_field(default: int, *, title: str, section: str) -> Param:
    """Return a field for a number of records or offsets from 0."""
    return Param(default, type="integer", minimum=0, maximum=MOST, title=title, section=section)


def seconds_field(*, title: str, section: str, **schema: Any) -> Param:
    """Return a field for seconds; may stay empty.

    Args:
        schema: the minimum; 0 by default.
    """
    bounds = {"maximum": YEAR_SECONDS, **({} if "exclusiveMinimum" in schema else {"minimum": 0})}
    return Param(None, type=["null", "number"], title=title, section=section, **bounds, **schema)


def names_field(*, title: str, description_md: str, section: str, **items: Any) -> Param:
    """Return a field for names, one a line; may stay empty.

    Args:
        items: further schema of a line.
    """
    return Param(
        None,
        type=["null", "array"],
        items={"type": "string", "maxLength": _LONGEST, **items},
        maxItems=_MOST_NAMES,
        title=title,
        description_md=description_md,
        section=section,
    )


def patterns_field(*, title: str, description_md: str, section: str) -> Param:
    """Return a field for names or Java regular expressions, one a line; may stay empty."""
    return names_field(title=title, description_md=description_md, section=section, format=JAVA_REGEX)


def topics_field(*, title: str, description_md: str, section: str, names: Sequence[str] = ()) -> Param:
    """Return a field for topic names or Java regular expressions, one a line; may stay empty.

    Args:
        names: all topics that can be chosen, if they are known; the form then is a list to choose from.
    """
    field = patterns_field(title=title, description_md=description_md, section=section)
    if names:
        # Airflow 3.3 turns examples of an array into a select list without free text: only if the list is complete.
        field.schema["examples"] = list(names)
    return field


def topic_names(patterns: Sequence[str]) -> tuple[str, ...]:
    """Return the topics that a selection names one by one; none if a pattern in it may select others too."""
    if not all(_NAME.fullmatch(pattern) for pattern in patterns):
        return ()
    return tuple(pattern.replace("\\", "") for pattern in patterns)


def chosen_names(params: Mapping[str, Any], field: str) -> tuple[str, ...]:
    """Return the names in a field with one name a line; empty if there is no value.

    Raises:
        ConfigurationError: a value was given, and it has no name. Empty would mean everything.
    """
    given = params.get(field) or ()
    names = tuple(text.strip() for text in given if text.strip())
    if given and not names:
        raise ConfigurationError(
            f"{field} is set, but contains no name: {list(given)}.",
            action="Enter a name, or omit the field to select all. Check if the value comes from a variable that is "
            "not set.",
        )
    return names


def chosen_topics(params: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the value of the `topics` field.

    Raises:
        ConfigurationError: as `chosen_names`.
    """
    return chosen_names(params, "topics")


def chosen_values(wanted: type[DataclassInstance], params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the form's values for the fields of a dataclass with the same names, without empty values and defaults.

    Airflow has validated them against the form's JSON schema, for which `3.0` is a whole number, too.

    Raises:
        ConfigurationError: as `chosen_names`.
    """
    kinds, defaults = field_types(wanted), {field.name: field.default for field in fields(wanted)}
    named = {name: kinds[name] for name in params if name in kinds and params[name] is not None}
    found = {name: chosen_names(params, name) if kind is tuple else kind(params[name]) for name, kind in named.items()}
    return {name: value for name, value in found.items() if value not in ((), defaults[name])}


def tasks_field(flow: FlowConfig, *, section: str) -> Param:
    """Return the field for the number of Spark tasks; empty uses the flow's setting."""
    return Param(
        None,
        type=["null", "integer"],
        minimum=1,
        maximum=MOST_TASKS,
        title="Spark tasks",
        description_md=f"Maximum number of parallel tasks. Empty: **tasks.max** ({flow.tasks_max}).",
        section=section,
    )


def max_bytes_field(*, section: str, description: str) -> Param:
    """Return the field for a byte budget; empty is no limit."""
    return _positive_whole(title="Byte budget", section=section, description=description)


def bytes_per_second_field(*, section: str) -> Param:
    """Return the field for the source read rate; empty uses the flow's setting."""
    return _positive_whole(
        title="Bytes per second",
        section=section,
        description_md="Maximum read rate from the source, all tasks together. Empty: **mirror.rate.limit.bytes**. "
        "The limits of the clusters always apply.",
    )


def _positive_whole(**schema: str) -> Param:
    return Param(None, type=["null", "integer"], minimum=1, maximum=MOST, **schema)


def log_level_field(*, section: str) -> Param:
    """Return the field for the log level of the tasks and the Spark job."""
    return choice_field(
        USUAL_LOG_LEVEL,
        LOG_LEVELS,
        title="Log level",
        description="Log level of this project's messages, in the tasks and in the driver of the Spark job.",
        section=section,
    )
