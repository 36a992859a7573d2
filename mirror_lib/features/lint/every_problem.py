"""Every problem of a properties file in one pass, also those that its errors hide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from mirror_lib.config import loader as load
from mirror_lib.config.loader import explain
from mirror_lib.config.model import FlowConfig, Problem, Severity
from mirror_lib.config.secrets.lookup_context import looking_only
from mirror_lib.config.security.check import uses_kerberos
from mirror_lib.features.lint.fixes import fix
from mirror_lib.features.lint.flow_conflicts import meeting_problems
from mirror_lib.features.lint.login_check import login_errors, missing_for_kerberos


def every_problem(file: Path, data: bytes | None = None) -> tuple[Problem, ...]:
    """Return the problems of a file in the order of its lines, with those of the copy that `--fix` would write of it:
    a misspelt key hides what its line does.

    Args:
        file: the properties file.
        data: its content, if it is not to be read.
    """
    content = load.content(file) if data is None else data
    found = [*problems_as_written(file, content)]
    if any(each.rename_to for each in found):
        corrected = fix(content, found).data
        known = {(each.line, each.message) for each in found}
        found += (
            each
            for each in problems_as_written(file, corrected)
            if (each.line, each.message) not in known and each.severity is not Severity.NO_EFFECT
        )
    return tuple(sorted(dict.fromkeys(found), key=lambda problem: problem.line or 0))


def problems_as_written(file: Path, data: bytes) -> Iterator[Problem]:
    """Yield the problems of a file's content; those that misspelt keys hide are missing."""
    examined = load.examine(file, data)
    yield from examined.problems
    with looking_only():
        yield from meeting_problems(examined.config)
        yield from dict.fromkeys(_login_problems(file, data, examined.sound))
    clusters = sorted({cluster for flow in examined.config.enabled_flows for cluster in uses_kerberos(flow)})
    if clusters and (missing := missing_for_kerberos()) is not None:
        yield Problem.warning(
            f"{', '.join(clusters)}: sasl.mechanism=GSSAPI will fail on this machine, missing: {missing}"
        )


def _login_problems(file: Path, data: bytes, flows: Iterable[FlowConfig]) -> Iterator[Problem]:
    """Yield problems for which every connection of a run would be rejected."""
    for flow in flows:
        explained = explain(file, flow.flow, data)
        unknown = {name.partition("/")[0]: True for name, setting in explained.items() if "/" in name and setting.later}
        for client, error in login_errors(flow, unknown):
            names = (f"{client}/sasl.jaas.config", f"{client}/security.protocol")
            setting = next((explained[name] for name in names if name in explained), None)
            yield Problem.error(
                f"cluster {error.where.cluster}: {error.what.rstrip('.')}",
                setting,
                (error.action[:1].lower() + error.action[1:]).rstrip(".") or None,
            )
