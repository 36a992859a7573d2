"""`mirror config import-topics`: settings of articles that name topics one by one, as settings that have an effect."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mirror_lib.cli import ForceOption, JsonOption, Output, read_bytes, report_errors
from mirror_lib.config import loader as load
from mirror_lib.config.model import Severity
from mirror_lib.features.importers.commands.imported import OutputOption, mask_setting, problems_of, say, write_or_print
from mirror_lib.features.importers.topic_map import translate_topic_map

if TYPE_CHECKING:
    from mirror_lib.features.importers.topic_map import TranslatedFile

_FileArgument = Annotated[
    Path, typer.Argument(help="Properties file with source.replication.topic.X=Y.", metavar="FILE")
]
_SourceOption = Annotated[str, typer.Option(help="Alias of the source, if the file defines no clusters.")]
_TargetOption = Annotated[str, typer.Option(help="Alias of the target, if the file defines no clusters.")]


app = typer.Typer()


@app.command("import-topics")
def import_topics(
    file: _FileArgument,
    source: _SourceOption = "source",
    target: _TargetOption = "target",
    output_file: OutputOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Convert `source.replication.topic.X=Y`, which MirrorMaker 2 ignores, to settings that copy topic X to topic Y.

    All other lines of the file are unchanged, including passwords. Settings without a counterpart become comments with
    the reason. Exit code 2 if the new file has errors, which are listed.
    """
    with report_errors(as_json) as output:
        translated = translate_topic_map(read_bytes(file), source=source, target=target)
        write_or_print(translated.text, output_file, force=force, as_json=as_json)
        _show(output, translated, output_file, as_json=as_json)


def _show(output: Output, translated: TranslatedFile, path: Path | None, *, as_json: bool) -> None:
    """Report the result for the lines, and the result of `mirror config check`; no secrets."""
    problems = problems_of(translated.text)
    output.exit_code = 2 if any(problem.severity is Severity.ERROR for problem in problems) else 0
    output.document(
        {
            "written": None if path is None else str(path),
            "settings": [mask_setting(key, value, {}) for key, value in translated.settings.items()],
            "translated": [
                mask_setting(each.name, each.value, {"line": each.line, "key": each.key})
                for each in translated.translated
            ],
            "untranslated": [
                mask_setting(each.name, each.value, {"line": each.line, "reason": each.reason})
                for each in translated.untranslated
            ],
            "to_be_settled": list(translated.remarks),
            "problems": [load.describe(problem) for problem in problems],
        }
    )
    if not as_json:
        lines = len({each.line for each in translated.translated})
        left = [f"line {each.line}: {each.name}: {each.reason}" for each in translated.untranslated]
        counts = f"Lines translated: {lines}; lines turned into comments, with reasons: {len(left)}."
        problem_lines = [load.describe(problem) for problem in problems]
        say([counts, *left, *(f"To do: {remark}" for remark in translated.remarks), *problem_lines])
