"""Which key a key that nothing reads was probably meant to be, and which clusters a file only seems to have. Pure.

A guess is certain only if no other key can be meant: aliases such as `dc1` and `dc3` are similar, and a line of the one
must not become a line of the other.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from mirror_lib.config.file.keys import ARROW, Level, place_of

_BOOTSTRAP = ".bootstrap.servers"
#: Of a connector's settings, and of clients at the top level: not aliases.
_NO_ALIASES = frozenset({"source.cluster", "target.cluster", "source", "target", "consumer", "producer", "admin"})
_ALIAS_SLIP = 0.75
#: An alias that lacks its addresses is probably the one meant, so less similarity is enough.
_ABBREVIATION = 0.6
#: Arrows as people and web pages write them. Java reads the bytes of a file as ISO-8859-1, so an arrow or a dash in
#: UTF-8 is three characters.
_ARROWS = re.compile("(?:--?|=|\xe2\x80[\x93\x94])(?:>|&gt;)|>|\xe2\x86\x92|--|[-_]")


@dataclass(frozen=True, slots=True)
class NearKey:
    """A key that was probably meant."""

    key: str
    #: True if both keys differ only in case or in the form of the arrow.
    is_certain: bool


def key_with_blank(key: str, value: str, clusters: Collection[str]) -> str | None:
    """Return the key of a line whose key was cut at a blank or at `=>`, such as `A -> B.topics`; None for others."""
    rest, found, _ = value.partition("=")
    if not found:
        return None
    whole = key + "".join(rest.split())
    if ARROW not in whole:
        whole = whole.replace(">", ARROW, 1)
    place, cut = place_of(whole, clusters), place_of(key, clusters)
    is_cut = not cut.name or cut.level is Level.NO_FLOW or key in clusters
    return whole if is_cut and place.level in (Level.FLOW, Level.CLUSTER) and place.name else None


def near_flow_key(key: str, clusters: Sequence[str], names: Collection[str]) -> NearKey | None:
    """Return the key of a flow that was probably meant; None if no two clusters are similar to those of the key.

    Args:
        names: of settings under a flow: without a real arrow, only keys with one of them are keys of a flow.
    """
    by_form = _by_form(clusters)
    for arrow in _ARROWS.finditer(key):
        source = by_form.get(_form(key[: arrow.start()]))
        if source is None:
            # A key of many arrows and dots has as many splits as their product.
            continue
        for head, name in _splits(key[arrow.end() :]):
            target = by_form.get(_form(head))
            if target and source != target and (arrow[0] == ARROW or name in names):
                return NearKey(f"{source}{ARROW}{target}.{name}", is_certain=True)
    head, _, name = key.rpartition(ARROW)[2].partition(".")
    source, target = similar_alias(key.partition(ARROW)[0], clusters), similar_alias(head, clusters)
    if ARROW in key and source and target and source != target:
        return NearKey(f"{source}{ARROW}{target}.{name}", is_certain=False)
    return None


def near_cluster_key(key: str, clusters: Sequence[str]) -> NearKey | None:
    """Return the key of a cluster that was probably meant; None if no cluster is similar to that of the key."""
    by_form = _by_form(clusters)
    for head, name in _splits(key):
        if alias := by_form.get(_form(head)):
            return NearKey(f"{alias}.{name}", is_certain=True)
    head, dot, name = key.partition(".")
    alias = similar_alias(head, clusters)
    return NearKey(f"{alias}.{name}", is_certain=False) if dot and alias else None


def unlisted_clusters(keys: Collection[str], clusters: Sequence[str]) -> frozenset[str]:
    """Return the aliases that have addresses in a file but are not among its clusters, which MM2 ignores.

    An alias that is similar to a cluster without addresses is a misspelling of that cluster, and not returned.
    """
    incomplete = [alias for alias in clusters if alias + _BOOTSTRAP not in keys]
    heads = (
        key.removesuffix(_BOOTSTRAP)
        for key in keys
        if key.endswith(_BOOTSTRAP) and ARROW not in key and place_of(key, clusters).level is Level.TOP
    )
    return frozenset(
        head for head in heads if head not in _NO_ALIASES and not similar_alias(head, incomplete, _ABBREVIATION)
    )


def alias_among(key: str, aliases: Collection[str]) -> str | None:
    """Return the alias among these that a key begins with, or that is the source or target of its flow."""
    source, arrow, rest = key.partition(ARROW)
    found = [head for head, _ in _splits(rest if arrow else key) if head in aliases]
    if arrow and source in aliases:
        found.append(source)
    return max(found, key=len, default=None)


def similar_alias(alias: str, clusters: Iterable[str], cutoff: float = _ALIAS_SLIP) -> str | None:
    """Return the cluster that an alias may be a misspelling of; None if two clusters are equally similar to it."""
    by_form = _by_form(tuple(clusters))
    found = difflib.get_close_matches(_form(alias), sorted(by_form), 2, cutoff)
    ratios = [difflib.SequenceMatcher(None, each, _form(alias)).ratio() for each in found]
    return by_form[found[0]] if found and ratios.count(ratios[0]) == 1 else None


def _by_form(clusters: Sequence[str]) -> dict[str, str]:
    """Return the clusters by their aliases without case, except those that differ in case only."""
    forms = [_form(alias) for alias in clusters]
    return {form: alias for form, alias in zip(forms, clusters, strict=True) if forms.count(form) == 1}


def _form(alias: str) -> str:
    return alias.casefold()


def _splits(text: str) -> Iterator[tuple[str, str]]:
    """Yield the parts before and behind each dot, since aliases may contain dots."""
    at = text.find(".")
    while at >= 0:
        yield text[:at], text[at + 1 :]
        at = text.find(".", at + 1)
