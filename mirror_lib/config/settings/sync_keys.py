"""Topic configs and ACLs beyond MM2's rules, `mirror.configs.*` and `mirror.acls.*`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from mirror_lib.config.frozen import Frozen, own
from mirror_lib.topology.acls import AclPattern, AclResource
from mirror_lib.topology.java_regex import compile_list
from mirror_lib.topology.java_types import parse_list

CONFIGS_ALWAYS: str = "mirror.configs.always"
CONFIGS_DEFAULT: str = "mirror.configs.default"
CONFIGS_NEVER: str = "mirror.configs.never"
CONFIGS_OVERRIDE = "mirror.configs.override"

#: `=` between two principals: what follows begins with a principal's type.
_PRINCIPAL_SIGN = re.compile(r"=(?=\s*[A-Za-z_]\w*:)")
_PRINCIPAL = re.compile(r"[A-Za-z_]\w*:.+")


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


def _members(text: str) -> Iterator[str]:
    return (member.strip() for member in text.split(";") if member.strip())


def _parse_choices(text: str, choices: tuple[str, ...]) -> tuple[str, ...]:
    chosen = tuple(dict.fromkeys(name.lower() for name in parse_list(text)))
    if not chosen or any(name not in choices for name in chosen):
        raise ValueError("a list of " + ", ".join(choices))
    return chosen


class ConfigRules(Frozen):
    """What happens to topic configs beyond MM2's rules; names are Java regexes for whole config names.

    The first that names a config counts: `override`, `never`, `always`, `default`, then MM2's rules.
    """

    override: Mapping[str, str] = own(
        {},
        "Topic configs of all remote topics of the flow, regardless of the source: "
        "`retention.ms=86400000;cleanup.policy=compact,delete`. Takes precedence over all other rules.",
        name=CONFIGS_OVERRIDE,
        type="string",
        read=parse_overrides,
    )
    never: tuple[str, ...] = own(
        (),
        "Names or Java regexes of topic configs that the flow never sets or changes, so that manual changes on the "
        "target are kept. Adds to `config.properties.exclude`, whose default a configured list would replace.",
        name=CONFIGS_NEVER,
        read=parse_names,
    )
    always: tuple[str, ...] = own(
        (),
        "Names or Java regexes of topic configs that always get the effective value of the source, also from "
        "server.properties or Kafka's default, even if `config.properties.exclude` matches them.",
        name=CONFIGS_ALWAYS,
        read=parse_names,
    )
    default: tuple[str, ...] = own(
        (),
        "Names or Java regexes of topic configs that follow the target cluster: they are not copied, and are removed "
        "from remote topics. Precedence of the lists: never, always, default.",
        name=CONFIGS_DEFAULT,
        read=parse_names,
    )


class AclRules(Frozen):
    """Which ACLs are copied and how; the defaults are MM2's."""

    resources: tuple[AclResource, ...] = own(
        (AclResource.TOPIC,),
        "Resource types whose ACLs are synchronized: `topic` (as in MM2), `group`, `transactional-id`. Groups are "
        "selected by the flow's group filter; groups and transactional ids keep their names.",
        name="mirror.acls.resources",
        read=parse_resources,
    )
    patterns: tuple[AclPattern, ...] = own(
        (AclPattern.LITERAL,),
        "Pattern types of the ACLs that are synchronized: `literal` (as in MM2), `prefixed`. With `prefixed` a grant "
        "on all topics (`*`) becomes a grant on all remote topics of the flow.",
        name="mirror.acls.patterns",
        read=parse_patterns,
    )
    #: Names on the target by names on the source.
    principals: Mapping[str, str] = own(
        {},
        "Principals with another name on the target: `User:alice=User:a.smith;User:CN=app,O=x=User:app`. All others "
        "keep their names.",
        name="mirror.acls.principals",
        type="string",
        read=parse_principals,
    )
    stage_writes: bool = own(
        False,
        "If true, WRITE grants on topics, which MM2 drops, are kept in the ledger until `mirror acls release` "
        "creates them on the target.",
        name="mirror.acls.stage.writes.enabled",
    )
    delete: bool = own(
        False,
        "If true, ACLs that this program created on the target are deleted when the source no longer has them. MM2 "
        "only adds ACLs. ACLs created by others are never changed.",
        name="mirror.acls.delete.enabled",
    )
