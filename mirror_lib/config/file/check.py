"""Find every problem of a file's keys and values, in one pass."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

from mirror_lib.config.file.addresses import schemes_without_effect, shown_scheme
from mirror_lib.config.file.comments import COMMENT_TODO, without_comment
from mirror_lib.config.file.derive import (
    ENABLED,
    NOT_OF_A_CLIENT,
    OLD_NAMES,
    FileSettings,
    FlowSettings,
    flow_settings,
    is_false_with_comment,
    is_pattern_list,
)
from mirror_lib.config.file.keys import ARROW, Level, Place, place_of
from mirror_lib.config.file.misspelt_names import misspelt_name, name_with_another_word
from mirror_lib.config.file.near_keys import (
    NearKey,
    alias_among,
    key_with_blank,
    near_cluster_key,
    near_flow_key,
    unlisted_clusters,
)
from mirror_lib.config.file.placeholders import advice_for, placeholder_in
from mirror_lib.config.file.properties import Entry
from mirror_lib.config.file.unknown_names import HONOURED, foreign
from mirror_lib.config.model import Problem, Provenance, Severity
from mirror_lib.config.secrets.keys import is_secret
from mirror_lib.config.secrets.masking import masked_text
from mirror_lib.config.settings.definition import Definition, Scope
from mirror_lib.config.settings.feature_keys import feature_setting, feature_settings, unusable_feature
from mirror_lib.config.settings.kafka_names import APPLIED, BY_CLIENT, CLIENT_SET, WORKER_NAMES, WORKER_PREFIXES
from mirror_lib.config.settings.keys_of_transforms import FLOW_PREFIXES, is_transform_key
from mirror_lib.config.settings.mirror_keys import LEDGER_URL, OWN_BY_NAME
from mirror_lib.config.settings.mm2_keys import MM2_BY_NAME, TOP_LEVEL, WORKER_BY_NAME
from mirror_lib.config.settings.values import check_client_value, check_value
from mirror_lib.config.value_doubts import PATTERN_LISTS, value_doubts
from mirror_lib.former_names import SETTINGS as FORMER_SETTINGS
from mirror_lib.topology.java_types import parse_list
from mirror_lib.topology.names import FlowId

_LOCATION = "offset-syncs.topic.location"
#: Names of a connector's settings that apply to its clients only; those have their own keys.
_FOR_CLIENTS = ("source.", "target.", "consumer.", "producer.", "admin.")


def winner_over(setting: Provenance, file: FileSettings, flows: Iterable[FlowId]) -> Provenance | None:
    """Return an assignment that overrides this one in every flow; None if this one applies to some flow, or to none.

    Args:
        setting: of the file.
        flows: as `key_problems`.
    """
    assert setting.key is not None
    # The set of clients depends on the location of the offset-syncs topic.
    places = {} if setting.key.endswith(_LOCATION) else file
    alone = FileSettings({key: each for key, each in places.items() if key.endswith(_LOCATION)})
    alone[setting.key] = setting
    winners = []
    for flow in flows:
        counting = dict(_effective_settings(flow_settings(file, flow)))
        for slot, reached in _effective_settings(flow_settings(alone, flow)):
            if reached.key != setting.key:
                continue
            winner = counting.get(slot)
            if winner is None or winner.key in (None, setting.key):
                return None
            winners.append(winner)
    return winners[0] if winners else None


def _effective_settings(settings: FlowSettings) -> Iterator[tuple[tuple[str, str], Provenance]]:
    """Yield every setting of a flow that is read, by its reader and its name."""
    for name, setting in settings.connector.items():
        of_clients = name.startswith(_FOR_CLIENTS) and name not in NOT_OF_A_CLIENT
        if not of_clients and name not in CLIENT_SET and name not in OLD_NAMES.values() and name not in FORMER_SETTINGS:
            yield ("connector", name), setting
    yield from ((("worker", name), setting) for name, setting in settings.worker.items())
    for client, properties in settings.clients.items():
        yield from (((client, name), setting) for name, setting in properties.items())


_BEGIN, _END = "-----BEGIN", "-----END"
_TODO = "end every line except the last with `\n\\`, or read the value from a file with a provider"


def broken_pem(settings: Iterable[Provenance]) -> tuple[list[Problem], frozenset[str]]:
    """Return problems of PEM texts with missing line continuations, and the keys that are their lines.

    Args:
        settings: the assignments of a file.
    """
    problems: list[Problem] = []
    keys: set[str] = set()
    inside = False
    for setting in sorted(settings, key=lambda each: each.line or 0):
        key = setting.key or ""
        if inside or key.startswith((_BEGIN, _END)):
            keys.add(key)
        if key.startswith(_END):
            inside = False
        elif key.startswith(_BEGIN) or (_BEGIN in setting.value and _END not in setting.value):
            inside = True
            problems.append(
                Problem(
                    severity=Severity.ERROR,
                    message="a PEM text starts here, but its lines are not joined with a backslash",
                    key=None if key.startswith(_BEGIN) else key,
                    line=setting.line,
                    suggestion=_TODO,
                )
            )
    return problems, frozenset(keys)


_POLICY = "replication.policy"
_PROVIDERS = "config.providers"
_CLIENT_NAMES = frozenset().union(*BY_CLIENT.values())
#: Prefixes of client settings inside a flow, with the client they belong to.
_FLOW_CLIENTS = {
    "source.consumer.": "consumer",
    "source.producer.": "producer",
    "source.admin.": "admin",
    "target.consumer.": "consumer",
    "target.producer.": "producer",
    "target.admin.": "admin",
    "producer.override.": "producer",
    "consumer.override.": "consumer",
    "consumer.": "consumer",
    "producer.": "producer",
    "admin.": "admin",
}
_SIDES = ("source", "target")
_CLUSTER_CLIENTS = {f"{kind}.": kind for kind in BY_CLIENT}
_SYNCS_ONLY = (
    "it is used only by the producer of offset-syncs; the data producer is set by <target>.producer.* or by "
    "producer.override.* of the flow"
)
#: Of Connect's transforms; converters can also be set for a worker.
_ONLY_IN_FLOWS = ("transforms.", "predicates.")
_SHOWN_LENGTH = 80
_OWN = "mirror."
_DELETE = "delete the line"
#: Conflict markers of git.
#: JSON that was pasted into a properties file.
_QUOTES = ('"', "'")
_CONFLICTS = ("<<<<<<<", ">>>>>>>")
#: Maximum number of settings that a warning lists.
_TUNING_SHOWN = 8
#: Reported on their own as without effect.
_NO_CLIENT = "consumer.override."


def key_problems(file: FileSettings, clusters: Sequence[str], flows: Sequence[FlowId]) -> Iterator[Problem]:
    """Yield the problems of each assignment on its own. A value that has no effect is not rejected.

    Args:
        flows: `named_flows`, and of the other ones `pairs_of_each_cluster`.
    """

    def winner(setting: Provenance) -> Provenance | None:
        return winner_over(setting, file, flows)

    problems, lines_of_pem = broken_pem(file.values())
    yield from problems
    aliases = frozenset(clusters)
    unlisted = unlisted_clusters(file.keys(), clusters)
    yield from _check_tuning(file.values(), aliases)
    for setting in file.values():
        if setting.key is not None and setting.key not in lines_of_pem:
            place = place_of(setting.key, aliases)
            yield from _Assignment(setting, setting.key, place, file, clusters, unlisted, winner).problems()


def hidden_cut_keys(entries: Iterable[Entry], clusters: Collection[str]) -> Iterator[Problem]:
    """Yield a problem for each line whose key was cut at a blank, and that a later line with the same rest hides.

    Args:
        entries: those that others with the same key follow.
    """
    for entry in entries:
        if (whole := key_with_blank(entry.key, entry.value, clusters)) is not None:
            message, suggestion = _about_cut_key(entry.key, whole)
            yield Problem(
                severity=Severity.ERROR, message=message, key=entry.key, line=entry.line, suggestion=suggestion
            )


def _about_cut_key(key: str, whole: str) -> tuple[str, str]:
    return f"the key ends at the first space or equals sign, so this line sets {key!r}", f"write {whole}"


def _check_tuning(settings: Iterable[Provenance], clusters: Collection[str]) -> Iterator[Problem]:
    """Yield one warning for all settings that tune Java's clients: there may be dozens, with the same message."""
    found = []
    for setting in settings:
        place = place_of(setting.key or "", clusters)
        if place.level not in (Level.CLUSTER, Level.FLOW) or place.name in MM2_BY_NAME:
            continue
        kind = _kind(place.name, _CLUSTER_CLIENTS if place.level is Level.CLUSTER else _FLOW_CLIENTS)
        if kind is not None and kind[1] in BY_CLIENT[kind[0]] - APPLIED and not place.name.startswith(_NO_CLIENT):
            found.append((setting.line, kind[1]))
    if found:
        names = sorted({name for _, name in found})
        shown = ", ".join(names[:_TUNING_SHOWN]) + (", ..." if len(names) > _TUNING_SHOWN else "")
        lines = ", ".join(str(line) for line, _ in sorted(found, key=lambda each: each[0] or 0)[:_TUNING_SHOWN])
        yield Problem(
            severity=Severity.WARNING,
            message=f"no effect here, only on Java's clients: {shown} (line "
            f"{lines}{', ...' if len(found) > _TUNING_SHOWN else ''})",
            line=found[0][0],
            suggestion="keep them for MM2; use mirror.fetch.*, mirror.batch.* and mirror.produce.* here",
        )


@dataclass(frozen=True, slots=True)
class _Assignment:
    """One line of the file."""

    _setting: Provenance
    _key: str
    _place: Place
    _file: FileSettings
    _clusters: Sequence[str]
    _unlisted: Collection[str]
    _winner: Callable[[Provenance], Provenance | None]

    def problems(self) -> Iterator[Problem]:
        checks: dict[Level, Callable[[str], Iterator[Problem]]] = {
            Level.TOP: self._at_top_level,
            Level.CLUSTER: self._at_cluster,
            Level.FLOW: self._at_flow,
            Level.NO_FLOW: self._at_no_flow,
        }
        found = list(checks[self._place.level](self._place.name))
        yield from found
        if not any(problem.severity in (Severity.ERROR, Severity.NO_EFFECT) for problem in found):
            yield from self._placeholder()

    def _placeholder(self) -> Iterator[Problem]:
        """Yield no details about a value from a provider: it is treated as a secret."""
        left = placeholder_in(self._place.name, self._setting.value)
        if left is not None and self._setting.written is None and not self._setting.later:
            which = "a placeholder" if self._is_secret() else f"the placeholder {left}"
            yield self._warn(f"{which} is not replaced", advice_for(None if self._is_secret() else left))

    def _at_top_level(self, name: str) -> Iterator[Problem]:
        definition = MM2_BY_NAME.get(name) or _own(name) or WORKER_BY_NAME.get(name)
        client = name.split(".", 1)[0]
        if definition is not None and definition.scope is Scope.FLOW_ONLY:
            yield self._no_effect("MM2 drops it silently at the top level", self._flow_advice(name))
        elif name in OWN_BY_NAME and OWN_BY_NAME[name].scope is Scope.CLUSTER:
            yield self._error(f"{name} belongs to a cluster", f"write <alias>.{name}")
        elif definition is not None and definition.scope is Scope.CLUSTER:
            yield self._no_effect("MM2 ignores it at the top level", f"write <target>.{name}, or delete the line")
        elif definition is not None:
            yield from self._check_definition(definition)
        elif is_transform_key(name):
            # Checked together with all others of a flow.
            return
        elif name in CLIENT_SET:
            yield from self._client_value(name)
        elif name.startswith(_ONLY_IN_FLOWS) or self._is_of_a_side(name):
            yield self._no_effect("MM2 drops it silently at the top level", self._flow_advice(name))
        elif name.startswith((f"{_PROVIDERS}.", f"{_POLICY}.")):
            yield from self._policy_typo(name)
        elif (sentence := foreign(name)) is not None:
            yield self._foreign(name, sentence)
        elif client in BY_CLIENT and "." in name:
            yield self._no_effect("MM2 drops it silently at the top level", _client_advice(client, name))
        elif (whole := self._key_with_blank()) is not None:
            yield self._blank_in_key(whole)
        elif name.startswith(WORKER_PREFIXES):
            return
        elif name in WORKER_NAMES or name in _CLIENT_NAMES:
            yield self._no_effect("MM2 ignores it at the top level", _bare_advice(name))
        elif (near := near_flow_key(name, self._clusters, _flow_names())) is not None:
            yield self._misspelt(near)
        elif (head := _head_of_cluster(name, self._unlisted)) is not None:
            yield self._of_no_cluster(name, head)
        else:
            yield self._unknown(name, _top_level_names())

    def _is_of_a_side(self, name: str) -> bool:
        """Return True for a client's setting of a flow's source or target, which are no aliases of this file."""
        side = name.partition(".")[0]
        return side in _SIDES and side not in self._unlisted and _kind(name, _FLOW_CLIENTS) is not None

    def _of_no_cluster(self, name: str, head: str) -> Problem:
        near = None if head in self._unlisted else near_cluster_key(name, self._clusters)
        if near is not None:
            return self._misspelt(near, f"Else add {head} to clusters, or delete the line")
        return self._no_effect(f"{head} is not in clusters", f"add {head} to clusters, or delete the line")

    def _at_cluster(self, name: str) -> Iterator[Problem]:
        kind = _kind(name, _CLUSTER_CLIENTS)
        if not name and (whole := self._key_with_blank()) is not None:
            yield self._blank_in_key(whole)
        elif kind is not None:
            yield from self._client(*kind)
        elif name in WORKER_BY_NAME:
            yield from self._check_definition(WORKER_BY_NAME[name])
        elif name in WORKER_NAMES or name.startswith(WORKER_PREFIXES):
            yield from self._client_value(name)
        elif name in OWN_BY_NAME and OWN_BY_NAME[name].scope is Scope.CLUSTER:
            yield from self._check_definition(OWN_BY_NAME[name])
        elif (own := _own(name)) is not None:
            where = "at the top level" if own.scope is Scope.TOP else "at the top level or under a flow"
            yield self._error(f"{name} is not allowed under a cluster", f"write it {where}")
        elif is_transform_key(name):
            where = "at the top level or under a flow"
            yield self._error(f"{name} is not allowed under a cluster", f"write it {where}")
        elif name.startswith(_ONLY_IN_FLOWS):
            yield self._no_effect("MM2 ignores it under a cluster", f"write {name} under a flow, or delete the line")
        elif name in MM2_BY_NAME or name.startswith(f"{_POLICY}."):
            todo = f"write {name} at the top level or under a flow, or delete the line"
            yield self._no_effect("MM2 ignores it under a cluster", todo)
        elif (sentence := foreign(name)) is not None:
            yield self._foreign(name, sentence)
        elif name in _CLIENT_NAMES:
            yield self._no_effect("no client uses it in this form", _bare_advice(name, self._place.prefix))
        else:
            yield self._unknown(name, _cluster_names())

    def _at_flow(self, name: str) -> Iterator[Problem]:
        definition = MM2_BY_NAME.get(name) or _own(name)
        kind = _kind(name, _FLOW_CLIENTS)
        if not name and (whole := self._key_with_blank()) is not None:
            yield self._blank_in_key(whole)
        elif name in MM2_BY_NAME and MM2_BY_NAME[name].scope is Scope.TOP:
            yield self._no_effect(
                f"{name} applies to the whole file, not to a flow", f"write {name}, or delete the line"
            )
        elif definition is not None and definition.scope is Scope.TOP:
            yield self._error(f"{name} applies to the whole file, not to a flow", f"write {name} without the flow")
        elif name in OWN_BY_NAME and OWN_BY_NAME[name].scope is Scope.CLUSTER:
            yield self._error(f"{name} belongs to a cluster, not to a flow", f"write <alias>.{name}")
        elif definition is not None:
            yield from self._check_definition(definition)
        elif is_transform_key(name) or name.startswith(FLOW_PREFIXES):
            # Checked together with all others of the flow.
            return
        elif name.startswith("consumer.override."):
            rest = name.removeprefix("consumer.override.")
            todo = f"write {self._place.flow}.source.consumer.{rest}, or delete the line" if rest in APPLIED else None
            yield self._no_effect("consumer.override.* has no effect on a source connector", todo)
        elif kind is not None:
            if name.startswith(("producer.", "target.producer.")) and not name.startswith("producer.override."):
                yield self._warn(_SYNCS_ONLY)
            yield from self._client(*kind)
        elif name.startswith(("source.cluster.", "target.cluster.")):
            yield from self._connection(name.split(".", 2)[2])
        elif name.startswith(f"{_POLICY}."):
            yield from self._policy_typo(name)
        elif name in CLIENT_SET:
            yield self._no_effect("no client uses it in this form", f"write <alias>.{name}, or delete the line")
        elif (sentence := foreign(name)) is not None:
            yield self._foreign(name, sentence)
        elif name in WORKER_NAMES or name.startswith((*WORKER_PREFIXES, _PROVIDERS)):
            target = self._place.flow.target if self._place.flow else "<target>"
            todo = f"write {target}.{name}, or delete the line" if name in WORKER_BY_NAME else None
            yield self._no_effect("MM2 does not read it under a flow", todo)
        elif name in _CLIENT_NAMES:
            yield self._no_effect("no client uses it in this form", _bare_advice(name, f"{self._place.flow}.source."))
        else:
            yield self._unknown(name, _flow_names())

    def _at_no_flow(self, key: str) -> Iterator[Problem]:
        aliases = ", ".join(self._clusters) or "none"
        start, _, rest = key.partition(ARROW)
        if key.startswith(_QUOTES):
            yield self._quoted_key()
        elif (whole := self._key_with_blank()) is not None:
            yield self._blank_in_key(whole)
        elif start in self._clusters and rest.startswith(f"{start}."):
            yield self._no_effect("a flow connects two different clusters")
        elif alias_among(key, self._unlisted) is None and (near := near_flow_key(key, self._clusters, ())) is not None:
            message = f"{key} is not in a flow between the clusters ({aliases})"
            yield self._misspelt(near, "Else add its clusters to clusters, or delete the line", message)
        else:
            message = f"it is not in a flow between the clusters ({aliases})"
            yield self._no_effect(message, "add its clusters to clusters, or delete the line")

    def _check_definition(self, definition: Definition) -> Iterator[Problem]:
        if definition.instead:
            yield self._warn(definition.instead)
            return
        if (failed := unusable_feature(definition.name)) is not None:
            yield self._error(f"it needs the feature {failed.name}: {failed.why}", failed.action)
        if (present := FORMER_SETTINGS.get(self._place.name)) is not None:
            yield self._renamed(present)
        if definition.name == ENABLED and is_false_with_comment(self._setting.value):
            why = "the text after # is part of the value, which is not true: the flow is disabled, as in MM2"
            yield self._warn(why, COMMENT_TODO)
            return
        value = self._setting.value
        # Of a comment behind a value, one warning is enough.
        found = value_doubts(definition.name, value) if without_comment(value) == value else ()
        doubts = [self._warn(what, todo) for what, todo in found]
        yield from doubts
        wrong = list(self._value(lambda text: check_value(definition, text)))
        # A regex that was cut at a comma is invalid because of it.
        yield from (each.model_copy(update={"suggestion": doubts[-1].suggestion}) if doubts else each for each in wrong)

    def _client(self, kind: str, name: str) -> Iterator[Problem]:
        if name in BY_CLIENT[kind]:
            yield from self._client_value(name)
            return
        guess = misspelt_name(name, BY_CLIENT[kind])
        message = f"{name} is not a setting of Kafka's {kind}, which ignores it"
        if guess in APPLIED:
            # With the right name it would have an effect.
            yield self._warn(message, f"did you mean {guess}?")
        else:
            yield self._no_effect(message, f"did you mean {guess}? Else delete the line" if guess else None)

    def _connection(self, name: str) -> Iterator[Problem]:
        if name in CLIENT_SET:
            yield from self._client_value(name)
        else:
            guess = misspelt_name(name, CLIENT_SET)
            if guess:
                yield self._warn("only connection settings are used here", f"did you mean {guess}?")
            else:
                yield self._no_effect("only connection settings are used here")

    def _client_value(self, name: str) -> Iterator[Problem]:
        yield from self._value(lambda text: check_client_value(name, text))
        if name == "bootstrap.servers":
            cluster = {} if self._place.cluster is None else self._file.cluster(self._place.cluster)
            protocol = cluster.get("security.protocol")
            uses = "PLAINTEXT" if protocol is None else protocol.value.strip().upper()
            for scheme in map(shown_scheme, schemes_without_effect(self._setting.value, uses)):
                todo = "write host:port; security.protocol of the cluster decides about TLS and login"
                yield self._warn(f"{scheme}:// has no effect, clients connect by security.protocol ({uses})", todo)

    def _policy_typo(self, name: str) -> Iterator[Problem]:
        """Custom policies may read any key of this form: only names close to a known one are doubted."""
        guess = misspelt_name(name, _policy_names())
        if guess is not None:
            yield self._warn("Kafka's replication policies do not read it", f"did you mean {guess}?")

    def _value(self, check: Callable[[str], object]) -> Iterator[Problem]:
        if self._setting.later:
            return
        try:
            check(self._setting.value)
        except ValueError as error:
            is_regex = self._place.name in PATTERN_LISTS or self._place.name.endswith("regex")
            left = placeholder_in(self._place.name, self._setting.value, is_invalid=not is_regex)
            # Advice about the braces of a placeholder would keep the placeholder.
            reason = str(error).partition("; write ")[0] if left else str(error)
            must = f"must be {self._reason(reason)}"
            winner = self._winner(self._setting)
            if winner is None:
                todo = getattr(error, "suggestion", None)
                if left:
                    todo = advice_for(None if self._is_secret() else left)
                elif self._is_valid_without_comment(check):
                    todo = COMMENT_TODO
                yield self._error(f"{self._key} {must}", todo)
                return
            line = "" if winner.line is None else f" in line {winner.line}"
            yield self._warn(f"{must}; it has no effect, because {winner.key}{line} overrides it", "delete the line")

    def _is_valid_without_comment(self, check: Callable[[str], object]) -> bool:
        try:
            check(without_comment(self._setting.value))
        except ValueError:
            return False
        return True

    def _reason(self, must_be: str) -> str:
        """Return what a value must be and what it is, unless it may be a secret."""
        value = self._setting.value.strip()
        parts = [part for part in (value, *parse_list(value)) if part]
        shows_value = any(part in must_be for part in parts)
        if self._is_secret():
            return "valid" if shows_value else must_be
        return must_be if shows_value else f"{must_be}, not {self._shown_value()!r}"

    def _is_secret(self) -> bool:
        # A value from a provider is treated as a secret.
        return is_secret(self._key) or self._key == LEDGER_URL or self._setting.written is not None

    def _shown_value(self) -> str:
        stated = without_comment(self._setting.value)
        shown = self._setting.value if stated == self._setting.value else f"{stated.rstrip()} # ..."
        text = masked_text(shown, self._key)
        return text if len(text) <= _SHOWN_LENGTH else text[:_SHOWN_LENGTH] + "..."

    def _key_with_blank(self) -> str | None:
        return key_with_blank(self._key, self._setting.value, self._clusters)

    def _blank_in_key(self, whole: str) -> Problem:
        return self._error(*_about_cut_key(self._key, whole))

    def _quoted_key(self) -> Problem:
        plain = self._key.strip("".join(_QUOTES))
        return self._no_effect(
            "the quotes are part of the key, so MM2 ignores the line",
            f"delete the line, or write {plain} and its value without quotes if it should have an effect",
        )

    def _renamed(self, present: str) -> Problem:
        key = self._place.prefix + present
        problem = self._warn(f"it was renamed to {present}, and is still read", f"write {key}")
        is_fixable = key not in self._file and self._is_valid_as(key)
        return problem.model_copy(update={"rename_to": key}) if is_fixable else problem

    def _unknown(self, name: str, known: frozenset[str]) -> Problem:
        if self._key.startswith(_QUOTES):
            return self._quoted_key()
        if self._key.startswith(_CONFLICTS):
            message = f"{self._key} is a marker of an unfinished merge, so the lines of both sides are used"
            return self._error(message, "finish the merge")
        guess = misspelt_name(name, known)
        if guess is not None:
            return self._typing_error(self._place.prefix + guess)
        if name.startswith(_OWN):
            return self._misspelt(None, "delete the line; `mirror config keys` lists all settings")
        guess = name_with_another_word(name, known)
        hint = None if guess is None or self._place.prefix + guess in self._file else self._place.prefix + guess
        message = "it is not a setting of MirrorMaker 2 or of this program"
        return self._no_effect(message, f"delete the line, or write {hint} if it was meant" if hint else None)

    def _typing_error(self, key: str) -> Problem:
        if (other := self._file.get(key)) is not None:
            return self._no_effect(f"it is not a setting, and {key} is set in line {other.line}")
        return self._misspelt(NearKey(key, is_certain=True))

    def _misspelt(self, near: NearKey | None, otherwise: str = "Else delete the line", message: str = "") -> Problem:
        """Return the error about a line that has no effect although it looks like a setting."""
        message = message or f"{self._key} is not a setting of MirrorMaker 2 or of this program"
        if near is None:
            return self._error(message, otherwise)
        if not near.is_certain or not self._is_valid_as(near.key):
            return self._error(message, f"did you mean {near.key}? {otherwise}")
        return self._error(message, f"did you mean {near.key}?").model_copy(update={"rename_to": near.key})

    def _is_valid_as(self, key: str) -> bool:
        """Return True if the value is one of this other key: a rename must not make another error."""
        renamed = replace(self, _key=key, _place=place_of(key, self._clusters))
        return all(each.severity is not Severity.ERROR for each in renamed.problems())

    def _foreign(self, name: str, sentence: str) -> Problem:
        """Return a problem for names that MM2 ignores as well, except names that have an effect here."""
        if name in HONOURED and not is_pattern_list(self._setting.value):
            return self._no_effect(
                "it was renamed in 2.7, is ignored by MM2 4.0, and its value is not a list of regexes"
            )
        if name in HONOURED:
            return self._warn(sentence)
        why, found, instead = sentence.partition("; write ")
        return self._no_effect(why, f"write {instead}, or delete the line" if found else None)

    def _flow_advice(self, name: str) -> str:
        definition = MM2_BY_NAME.get(name)
        if definition is not None and definition.instead:
            return _DELETE
        return f"write <source>-><target>.{name}, or delete the line"

    def _no_effect(self, message: str, suggestion: str | None = None) -> Problem:
        return self._problem(Severity.NO_EFFECT, f"{self._key}: {message}", suggestion or _DELETE)

    def _error(self, message: str, suggestion: str | None = None) -> Problem:
        return self._problem(Severity.ERROR, message, suggestion)

    def _warn(self, message: str, suggestion: str | None = None) -> Problem:
        return self._problem(Severity.WARNING, f"{self._key}: {message}", suggestion)

    def _problem(self, severity: Severity, message: str, suggestion: str | None) -> Problem:
        line = self._setting.line
        return Problem(severity=severity, message=message, key=self._key, line=line, suggestion=suggestion)


def _own(name: str) -> Definition | None:
    return OWN_BY_NAME.get(FORMER_SETTINGS.get(name, name)) or feature_setting(name)


@cache
def _top_level_names() -> frozenset[str]:
    return frozenset((*MM2_BY_NAME, *OWN_BY_NAME, *feature_settings(), *WORKER_BY_NAME, *CLIENT_SET))


@cache
def _cluster_names() -> frozenset[str]:
    return WORKER_NAMES | {f"{kind}.{name}" for kind, names in BY_CLIENT.items() for name in names}


@cache
def _flow_names() -> frozenset[str]:
    top = {definition.name for definition in TOP_LEVEL}
    names = (name for name in (*MM2_BY_NAME, *OWN_BY_NAME, *feature_settings()) if name not in top)
    clients = (prefix + name for prefix, kind in _FLOW_CLIENTS.items() for name in BY_CLIENT[kind])
    return frozenset((*names, *clients, *OLD_NAMES.values()))


@cache
def _policy_names() -> frozenset[str]:
    return frozenset(name for name in MM2_BY_NAME if name.startswith(_POLICY))


def _kind(name: str, prefixes: dict[str, str]) -> tuple[str, str] | None:
    """Return the client that a name belongs to, and the name without the prefix."""
    for prefix, kind in prefixes.items():
        if name.startswith(prefix) and len(name) > len(prefix):
            return kind, name.removeprefix(prefix)
    return None


def _head_of_cluster(key: str, unlisted: Collection[str]) -> str | None:
    """Return what is before a cluster's setting in a key, or the unlisted cluster it begins with; None for others."""
    if (alias := alias_among(key, unlisted)) is not None:
        return alias
    head, _, name = key.partition(".")
    is_of_cluster = name in CLIENT_SET or name in WORKER_NAMES or _kind(name, _CLUSTER_CLIENTS) is not None
    return head if is_of_cluster else None


def _client_advice(kind: str, name: str) -> str:
    """Return where a client's setting that is at the top level would have an effect."""
    rest = name.partition(".")[2]
    if rest.startswith("override."):
        rest = rest.removeprefix("override.")
        where = f"<source>-><target>.{name}" if kind == "producer" else f"<source>-><target>.source.consumer.{rest}"
    else:
        where = f"<alias>.{name}"
    return f"write {where}, or delete the line" if rest in APPLIED else _DELETE


def _bare_advice(name: str, prefix: str = "<alias>.") -> str:
    """Return where a setting without its client would have an effect; only for those that have one here."""
    if name not in APPLIED:
        return _DELETE
    if name in CLIENT_SET:
        return f"write {prefix}{name}, or delete the line"
    kinds = " or ".join(f"{prefix}{kind}.{name}" for kind in BY_CLIENT if name in BY_CLIENT[kind])
    return f"write {kinds}, or delete the line"
