"""The project's own settings for topic configs and ACLs, `mirror.configs.*` and `mirror.acls.*`: definitions and
values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from mirror_lib.config.model import AclRules, ConfigRules
from mirror_lib.config.settings.definition import BOOLEAN, LIST, STRING, Definition, Scope
from mirror_lib.topology.acls import AclPattern, AclResource
from mirror_lib.topology.java_regex import compile_list
from mirror_lib.topology.java_types import parse_list

CONFIGS_ALWAYS: str = "mirror.configs.always"
CONFIGS_DEFAULT: str = "mirror.configs.default"
CONFIGS_NEVER: str = "mirror.configs.never"
CONFIGS_OVERRIDE = "mirror.configs.override"
ACL_RESOURCES, ACL_PATTERNS = "mirror.acls.resources", "mirror.acls.patterns"
ACL_PRINCIPALS = "mirror.acls.principals"
ACL_STAGE_WRITES, ACL_DELETE = "mirror.acls.stage.writes.enabled", "mirror.acls.delete.enabled"

_SINCE = "own"
#: `=` between two principals: what follows begins with a principal's type.
_PRINCIPAL_SIGN = re.compile(r"=(?=\s*[A-Za-z_]\w*:)")
_PRINCIPAL = re.compile(r"[A-Za-z_]\w*:.+")

SYNC_KEYS = (
    Definition(
        CONFIGS_OVERRIDE,
        STRING,
        "",
        Scope.FLOW,
        _SINCE,
        "Topic configs of all remote topics of the flow, regardless of the source: "
        "`retention.ms=86400000;cleanup.policy=compact,delete`. Takes precedence over all other rules.",
    ),
    Definition(
        CONFIGS_NEVER,
        LIST,
        "",
        Scope.FLOW,
        _SINCE,
        "Names or Java regexes of topic configs that the flow never sets or changes, so that manual changes on the "
        "target are kept. Adds to `config.properties.exclude`, whose default a configured list would replace.",
    ),
    Definition(
        CONFIGS_ALWAYS,
        LIST,
        "",
        Scope.FLOW,
        _SINCE,
        "Names or Java regexes of topic configs that always get the effective value of the source, also from "
        "server.properties or Kafka's default, even if `config.properties.exclude` matches them.",
    ),
    Definition(
        CONFIGS_DEFAULT,
        LIST,
        "",
        Scope.FLOW,
        _SINCE,
        "Names or Java regexes of topic configs that follow the target cluster: they are not copied, and are "
        "removed from remote topics. Precedence of the lists: never, always, default.",
    ),
    Definition(
        ACL_RESOURCES,
        LIST,
        AclResource.TOPIC.value,
        Scope.FLOW,
        _SINCE,
        "Resource types whose ACLs are synchronized: `topic` (as in MM2), `group`, `transactional-id`. Groups are "
        "selected by the flow's group filter; groups and transactional ids keep their names.",
    ),
    Definition(
        ACL_PATTERNS,
        LIST,
        AclPattern.LITERAL.value,
        Scope.FLOW,
        _SINCE,
        "Pattern types of the ACLs that are synchronized: `literal` (as in MM2), `prefixed`. With `prefixed` a "
        "grant on all topics (`*`) becomes a grant on all remote topics of the flow.",
    ),
    Definition(
        ACL_PRINCIPALS,
        STRING,
        "",
        Scope.FLOW,
        _SINCE,
        "Principals with another name on the target: `User:alice=User:a.smith;User:CN=app,O=x=User:app`. All others "
        "keep their names.",
    ),
    Definition(
        ACL_STAGE_WRITES,
        BOOLEAN,
        "false",
        Scope.FLOW,
        _SINCE,
        "If true, WRITE grants on topics, which MM2 drops, are kept in the ledger until `mirror acls release` "
        "creates them on the target.",
    ),
    Definition(
        ACL_DELETE,
        BOOLEAN,
        "false",
        Scope.FLOW,
        _SINCE,
        "If true, ACLs that this program created on the target are deleted when the source no longer has them. MM2 "
        "only adds ACLs. ACLs created by others are never changed.",
    ),
)

_BY_NAME = {definition.name: definition for definition in SYNC_KEYS}
Lookup = Callable[[str], str | None]


def config_rules(lookup: Lookup) -> ConfigRules:
    """Return the values of the `mirror.configs.*` keys.

    Raises:
        ValueError: a value is not valid.
    """
    return ConfigRules(
        always=parse_names(lookup(CONFIGS_ALWAYS) or ""),
        default=parse_names(lookup(CONFIGS_DEFAULT) or ""),
        never=parse_names(lookup(CONFIGS_NEVER) or ""),
        override=parse_overrides(lookup(CONFIGS_OVERRIDE) or ""),
    )


def acl_rules(lookup: Lookup) -> AclRules:
    """Return the values of the `mirror.acls.*` keys.

    Raises:
        ValueError: a value is not valid.
    """

    def switch(name: str) -> bool:
        return bool(_BY_NAME[name].parse(lookup(name) or "false"))

    return AclRules(
        resources=parse_resources(lookup(ACL_RESOURCES) or AclResource.TOPIC.value),
        patterns=parse_patterns(lookup(ACL_PATTERNS) or AclPattern.LITERAL.value),
        principals=parse_principals(lookup(ACL_PRINCIPALS) or ""),
        stage_writes=switch(ACL_STAGE_WRITES),
        delete=switch(ACL_DELETE),
    )


def parse_names(text: str) -> tuple[str, ...]:
    """Parse names or Java regexes of configs.

    Raises:
        ValueError: a member is not a regex; the message completes "must be".
    """
    names = tuple(name for name in parse_list(text) if name)
    try:
        compile_list(names)
    except ValueError as error:
        raise ValueError(f"a list of names or Java regexes; {error}") from error
    return names


def parse_overrides(text: str) -> Mapping[str, str]:
    """Parse `retention.ms=1000;cleanup.policy=compact,delete`: values by name. A value may hold commas, not semicolons.

    Raises:
        ValueError: a member is not an assignment, or a name appears twice; the message completes "must be".
    """
    values: dict[str, str] = {}
    for member in _members(text):
        name, sign, value = (part.strip() for part in member.partition("="))
        if not (sign and name and value):
            raise ValueError(f"a list such as retention.ms=1000;max.message.bytes=2000; {member!r} has no value")
        if name in values:
            raise ValueError(f"a list with each config once; {name} is in it twice")
        values[name] = value
    return values


def parse_principals(text: str) -> Mapping[str, str]:
    """Parse `User:a=User:b;User:CN=app,O=x=User:app`: names on the target by names on the source.

    Raises:
        ValueError: a member is not a pair, or is ambiguous; the message completes "must be".
    """
    names: dict[str, str] = {}
    for member in _members(text):
        pairs = [
            (member[: sign.start()].strip(), member[sign.end() :].strip()) for sign in _PRINCIPAL_SIGN.finditer(member)
        ]
        pairs = [(old, new) for old, new in pairs if _PRINCIPAL.fullmatch(old) and _PRINCIPAL.fullmatch(new)]
        if len(pairs) != 1:
            how = "is ambiguous" if pairs else "is not valid"
            raise ValueError(f"a list of pairs such as User:alice=User:a.smith;User:bob=User:b.jones; {member!r} {how}")
        old, new = pairs[0]
        if old in names:
            raise ValueError(f"a list with each principal once; {old} is in it twice")
        names[old] = new
    return names


def parse_resources(text: str) -> tuple[AclResource, ...]:
    """Parse types of resources.

    Raises:
        ValueError: a member is not one; the message completes "must be".
    """
    return tuple(AclResource(name) for name in _parse_choices(text, tuple(AclResource)))


def parse_patterns(text: str) -> tuple[AclPattern, ...]:
    """Parse types of patterns.

    Raises:
        ValueError: a member is not one; the message completes "must be".
    """
    return tuple(AclPattern(name) for name in _parse_choices(text, tuple(AclPattern)))


#: For `mirror config check`: what a value must satisfy beyond its type.
CHECKS: Mapping[str, Callable[[str], object]] = {
    CONFIGS_ALWAYS: parse_names,
    CONFIGS_DEFAULT: parse_names,
    CONFIGS_NEVER: parse_names,
    CONFIGS_OVERRIDE: parse_overrides,
    ACL_RESOURCES: parse_resources,
    ACL_PATTERNS: parse_patterns,
    ACL_PRINCIPALS: parse_principals,
}


def _members(text: str) -> Iterator[str]:
    return (member.strip() for member in text.split(";") if member.strip())


def _parse_choices(text: str, choices: tuple[str, ...]) -> tuple[str, ...]:
    chosen = tuple(dict.fromkeys(name.lower() for name in parse_list(text)))
    if not chosen or any(name not in choices for name in chosen):
        raise ValueError("a list of " + ", ".join(choices))
    return chosen
