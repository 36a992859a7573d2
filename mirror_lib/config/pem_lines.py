"""PEM text whose lines were not joined: each looks like a setting, and a private key like an unknown name."""

from __future__ import annotations

from collections.abc import Iterable

from mirror_lib.config.model import Problem, Provenance, Severity

_BEGIN, _END = "-----BEGIN", "-----END"
_TODO = r"end every line of it but the last with `\n\`, or take it from a file by a provider"


def broken_pem(settings: Iterable[Provenance]) -> tuple[list[Problem], frozenset[str]]:
    """What is wrong with unjoined PEM texts, and the keys that are lines of theirs.

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
                    message="a PEM text begins here and goes on in lines that are not joined with this one",
                    key=None if key.startswith(_BEGIN) else key,
                    line=setting.line,
                    suggestion=_TODO,
                )
            )
    return problems, frozenset(keys)
