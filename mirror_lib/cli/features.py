"""`mirror features`: the installed features."""

from __future__ import annotations

import typer

from mirror_lib.cli.commands import commands
from mirror_lib.cli.frame import begin_with
from mirror_lib.cli.output import Output, report_errors
from mirror_lib.feature import Feature
from mirror_lib.installed_features import installed_features

app = typer.Typer()


@app.command()
@begin_with(report_errors)
def features(output: Output) -> None:
    """List the features of this installation: what they add, and why one cannot be used."""
    found = installed_features()
    rows = [(each.name, "ready", each.summary, ", ".join(each.commands)) for each in found.ready]
    rows += [(each.name, "failed", f"{each.why}. {each.action}", "") for each in found.failed]
    output.table("features", ("name", "state", "what", "commands"), sorted(rows))
    for feature in found.ready:
        for name in _taken(feature):
            output.note(f"mirror {name} is another command than that of {feature.name}, whose one cannot be called.")


def _taken(feature: Feature) -> list[str]:
    return [name for name, command in feature.commands.items() if commands().get(name, command) is not command]
