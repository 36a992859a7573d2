"""`mirror config`: check a properties file, show its effect on a flow, list all keys."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mirror_lib.cli import (
    FlowOption,
    ForceOption,
    JsonOption,
    Output,
    begin_with,
    capped_table,
    read_bytes,
    report_errors,
    write_file,
)
from mirror_lib.config import loader as load
from mirror_lib.config.loader import explain_with_transforms
from mirror_lib.config.model import Severity
from mirror_lib.config.secrets.masking import printable_value
from mirror_lib.features.lint.every_problem import every_problem, problems_as_written
from mirror_lib.features.lint.fixes import fix_safely
from mirror_lib.features.lint.reference import all_definitions, markdown_reference, transform_keys

FileArgument = Annotated[Path, typer.Argument(help="The MirrorMaker 2 properties file.", metavar="FILE")]

app = typer.Typer()


@app.command()
@begin_with(report_errors)
def check(
    output: Output,
    file: FileArgument,
    fix: Annotated[
        bool, typer.Option("--fix", help="Write a corrected copy and check it. Values are not changed.")
    ] = False,
    output_file: Annotated[
        Path | None, typer.Option("--output", help="Output file of --fix; default FILE.fixed.", metavar="PATH")
    ] = None,
    in_place: Annotated[bool, typer.Option("--in-place", help="Allow --fix to overwrite FILE itself.")] = False,
    force: ForceOption = False,
) -> None:
    """List all problems of a file; exit code 2 if one of them is an error."""
    if fix:
        target = file if in_place else output_file or Path(f"{file}.fixed")
        file = _write_fixed(file, target, output, force=in_place or force)
    problems = every_problem(file)
    errors = sum(problem.severity is Severity.ERROR for problem in problems)
    idle = sum(problem.severity is Severity.NO_EFFECT for problem in problems)
    warnings = len(problems) - errors - idle
    without_effect = f", {idle} line(s) without effect" if idle else ""
    columns = ("line", "severity", "key", "message", "suggestion")
    rows = [(p.line, p.severity.value, p.key, p.message, p.suggestion) for p in problems]
    output.document({"file": str(file), "errors": errors, "warnings": warnings, "no_effect": idle})
    output.document({"problems": [dict(zip(columns, row, strict=True)) for row in rows]})
    for problem in problems:
        output.note(f"{file}: {load.describe(problem)}")
    output.note(f"{file}: {errors} error(s), {warnings} warning(s){without_effect}")
    output.exit_code = 2 if errors else 0


def _write_fixed(file: Path, target: Path, output: Output, *, force: bool) -> Path:
    """Write the corrected copy, and show the changes."""
    fixed, kept = fix_safely(read_bytes(file), lambda data: tuple(problems_as_written(file, data)))
    write_file(target, fixed.data, force=force)
    for change in fixed.changes:
        output.note(f"{target}: line {change.line}: {change.what}")
    for change in kept:
        output.note(f"{target}: line {change.line}: {change.what}")
    changes, kept_lines = ([{"line": each.line, "what": each.what} for each in some] for some in (fixed.changes, kept))
    output.document({"fixed": str(target), "changes": changes, "kept": kept_lines})
    return target


@app.command()
@begin_with(report_errors)
def show(
    output: Output,
    file: FileArgument,
    flow: FlowOption,
    only_set: Annotated[bool, typer.Option("--set", help="Hide settings that have their default.")] = False,
) -> None:
    """Show the effective settings of a flow with their origin, its client properties, and its transforms."""
    explained, transforms = explain_with_transforms(file, flow)
    settings = {name: setting for name, setting in explained.items() if setting.origin != "default" or not only_set}
    rows = [
        (name, printable_value(name, setting), setting.origin, setting.line, setting.key)
        for name, setting in settings.items()
    ]
    output.document({"flow": flow})
    output.table("settings", ("key", "value", "origin", "line", "written as"), rows)
    capped_table(output, "transforms", ("transform", "topics", "what", "determinism"), transforms.described())


@app.command()
def keys(
    markdown: Annotated[bool, typer.Option("--markdown", help="Print docs/configuration.md.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List all keys with type, default and meaning."""
    with report_errors(as_json) as output:
        if markdown and not as_json:
            typer.echo(markdown_reference(), nl=False)
            return
        output.table(
            "keys",
            ("name", "type", "default", "scope", "since", "meaning", "instead"),
            [
                *(
                    (d.name, d.type.value, d.default, d.scope.value, d.since, d.meaning, d.instead)
                    for d in all_definitions()
                ),
                *((name, "string", None, "top level, flow", "own", meaning, "") for name, meaning in transform_keys()),
            ],
        )
