"""The transforms of a properties file: `transforms`, `predicates`, the converters, and all their settings.

Keys are those of Connect (`ConnectorConfig`, KIP-66, KIP-585) without the prefix of a flow.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from mirror_lib.features.transforms.smt import model
from mirror_lib.features.transforms.smt.converter_settings import parse_converters
from mirror_lib.features.transforms.smt.definitions import PREDICATES, SIDED, WHOLE
from mirror_lib.features.transforms.smt.model import (
    PREDICATES_PACKAGE,
    TRANSFORMS_PACKAGE,
    ChainSettings,
    ParsedSettings,
    SettingProblem,
    Stage,
)
from mirror_lib.features.transforms.smt.options import Options, split_list
from mirror_lib.features.transforms.smt.record import Side

_INSTEAD = "write it as a Spark SQL expression or a Python function"


def parse_settings(settings: Mapping[str, str]) -> ParsedSettings:
    """Read the transforms among a flow's settings; without any, the chain is empty and converters are ignored."""
    problems: list[SettingProblem] = []
    predicates = _parse_predicates(settings, problems)
    stages = _parse_stages(settings, predicates, problems)
    usable_stages = tuple(stage for stage in stages if stage is not None)
    chain = ChainSettings()
    if stages:
        converters, found = parse_converters(settings, usable_stages)
        problems += found
        chain = ChainSettings(usable_stages, *converters)
    refused = any(not problem.warning for problem in problems)
    return ParsedSettings(None if refused else chain, tuple(problems))


def _names(settings: Mapping[str, str], key: str, what: str, problems: list[SettingProblem]) -> list[str]:
    members = split_list(settings.get(key, ""))
    for member in dict.fromkeys(members):
        if not member:
            problems.append(SettingProblem(key, "has an empty element", "remove the comma"))
        elif members.count(member) > 1:
            problems.append(SettingProblem(key, f"contains {member} twice", "use different names"))
    names = [member for member in dict.fromkeys(members) if member]
    # A name may be the prefix of another one, followed by a dot.
    orphans = sorted(
        text
        for text in settings
        if text.startswith(f"{key}.") and not any(text.startswith(f"{key}.{name}.") for name in names)
    )
    problems += (
        SettingProblem(text, f"has no effect: {key} does not name such a {what}", f"add it to {key}", warning=True)
        for text in orphans
    )
    return names


def _parse_predicates(settings: Mapping[str, str], problems: list[SettingProblem]) -> dict[str, model.Predicate | None]:
    """Return predicates by name; None for those that cannot be used, with a problem for each."""
    found: dict[str, model.Predicate | None] = {}
    for name in _names(settings, "predicates", "predicate", problems):
        key = f"predicates.{name}.type"
        found[name] = None
        class_name = _class_name(settings, key, problems)
        if class_name is None:
            continue
        short = class_name.removeprefix(f"{PREDICATES_PACKAGE}.")
        if short not in PREDICATES:
            problems.append(_unsupported_problem(key, class_name, PREDICATES_PACKAGE, list(PREDICATES)))
            continue
        options = Options(f"predicates.{name}.", settings, owner=short)
        options.text("type")
        predicate = PREDICATES[short](options)
        options.note_unknown()
        problems += options.problems
        found[name] = None if options.has_failed else predicate
    return found


def _parse_stages(
    settings: Mapping[str, str], predicates: Mapping[str, model.Predicate | None], problems: list[SettingProblem]
) -> list[Stage | None]:
    """Return the chain; None for a stage that cannot be used, with a problem for each."""
    stages: list[Stage | None] = []
    for name in _names(settings, "transforms", "transform", problems):
        options, transform = _parse_transform(settings, name, problems)
        predicate_name = options.text("predicate")
        negate = options.flag("negate", default=False)
        if predicate_name is None and options.has("negate"):
            options.refuse("negate", "is set, but there is no predicate to negate", "set predicate, or remove it")
        if predicate_name is not None and predicate_name not in predicates:
            known = ", ".join(predicates) or "none"
            options.refuse(
                "predicate", f"refers to {predicate_name}, which is not in predicates (it has {known})", "add it there"
            )
        if transform is not None:
            options.note_unknown()
        problems += options.problems
        predicate = None if predicate_name is None else predicates.get(predicate_name)
        usable = transform is not None and not options.has_failed
        stages.append(Stage(name, transform, predicate, negate) if usable and transform is not None else None)
        if isinstance(transform, model.Filter) and predicate_name is None:
            message = "drops every record of the flow, because it has no predicate"
            problems.append(SettingProblem(options.prefix + "predicate", message, "set a predicate", warning=True))
    return stages


def _parse_transform(
    settings: Mapping[str, str], name: str, problems: list[SettingProblem]
) -> tuple[Options, model.Transform | None]:
    key = f"transforms.{name}.type"
    class_name = _class_name(settings, key, problems) or ""
    short = class_name.removeprefix(f"{TRANSFORMS_PACKAGE}.")
    options = Options(f"transforms.{name}.", settings, owner=short or name)
    options.text("type")
    stem, dollar, side = short.partition("$")
    if short in WHOLE:
        return options, WHOLE[short](options)
    if stem in SIDED and side in ("Key", "Value"):
        return options, SIDED[stem](Side(side.lower()), options)
    if stem in SIDED:
        message = f"is {class_name}, which is abstract" if not dollar else f"is {class_name}, which does not exist"
        problems.append(SettingProblem(key, message, f"write {stem}$Key or {stem}$Value"))
    elif class_name:
        known = [*WHOLE, *(f"{stem}${side}" for stem in SIDED for side in ("Key", "Value"))]
        problems.append(_unsupported_problem(key, class_name, TRANSFORMS_PACKAGE, known))
    return options, None


def _class_name(settings: Mapping[str, str], key: str, problems: list[SettingProblem]) -> str | None:
    text = settings.get(key, "").strip()
    if not text:
        problems.append(SettingProblem(key, "is missing", "set the class"))
    return text or None


def _unsupported_problem(key: str, class_name: str, package: str, known: list[str]) -> SettingProblem:
    guess = difflib.get_close_matches(class_name.rpartition(".")[2], known, 1, 0.8)
    action = f"write {package}.{guess[0]}" if guess and class_name.startswith(package) else _INSTEAD
    return SettingProblem(key, f"is {class_name}, which is not supported here", action)
