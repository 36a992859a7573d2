"""The documents hold together: links lead somewhere, every reason code is explained, every command exists."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import typer

import mirror_lib
from mirror_lib.cli.main import app
from mirror_lib.errors import MirrorError

PROJECT = Path(__file__).resolve().parents[3]
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_INLINE_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\]\(<?([^)\s>]+)>?\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
_EXPLICIT = re.compile(r"<a (?:id|name)=\"([^\"]+)\"")
_TROUBLESHOOTING = PROJECT / "docs" / "troubleshooting.md"


def _documents() -> list[Path]:
    folders = (path for path in PROJECT.iterdir() if path.is_dir() and not path.name.startswith("."))
    return sorted([*PROJECT.glob("*.md"), *(path for folder in folders for path in folder.rglob("*.md"))])


def _prose(path: Path) -> str:
    return _FENCE.sub("", path.read_text(encoding="utf-8"))


def anchors(path: Path) -> set[str]:
    """The anchors of a document's headings as GitHub and GitLab make them."""
    text = _prose(path)
    found: set[str] = set(_EXPLICIT.findall(text))
    for heading in _HEADING.findall(text):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        number, unique = 1, anchor
        while unique in found:
            unique, number = f"{anchor}-{number}", number + 1
        found.add(unique)
    return found


def _dead_links(path: Path) -> Iterator[str]:
    for target in _LINK.findall(_INLINE_CODE.sub("", _prose(path))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = path if not name else (path.parent / name).resolve()
        if not file.exists():
            yield f"{target}: there is no such file"
        elif anchor and file.suffix == ".md" and anchor not in anchors(file):
            yield f"{target}: there is no such heading"


def _of_each_document(find: Callable[[Path], Iterable[str]]) -> dict[str, list[str]]:
    """What is found in the documents, by document."""
    found = {str(path.relative_to(PROJECT)): list(find(path)) for path in _documents()}
    return {name: texts for name, texts in found.items() if texts}


def test_no_command_has_a_flow_that_a_shell_would_take_for_a_redirection() -> None:
    unquoted = re.compile(r"--flow [^'\"\s][^\s]*->\S*")
    assert _of_each_document(lambda path: unquoted.findall(path.read_text(encoding="utf-8"))) == {}


def test_every_relative_link_leads_somewhere() -> None:
    assert _of_each_document(_dead_links) == {}


def test_every_document_is_reached_from_the_readme() -> None:
    linked = {(PROJECT / target.partition("#")[0]).resolve() for target in _LINK.findall(_prose(PROJECT / "README.md"))}

    assert [path.name for path in sorted((PROJECT / "docs").glob("*.md")) if path.resolve() not in linked] == []


@cache
def _commands() -> dict[tuple[str, ...], set[str]]:
    """The options of every command of `mirror`, by its words; `...` stands for an argument."""
    found: dict[tuple[str, ...], set[str]] = {}

    def collect(command: Any, path: tuple[str, ...]) -> None:
        found[path] = {name for each in command.params for name in (*each.opts, *each.secondary_opts)} | {"--help"}
        if any(each.param_type_name == "argument" for each in command.params):
            found[path].add("...")
        if hasattr(command, "list_commands"):
            context = typer.Context(command)
            for name in command.list_commands(context):
                collect(command.get_command(context, name), (*path, name))

    collect(typer.main.get_command(app), ())
    return found


def _shell_lines(text: str) -> Iterator[str]:
    """Commands in indented and fenced blocks, continued lines joined, without pipes and comments."""
    fenced = "\n".join(re.sub(r"^", "    ", block.group(0), flags=re.MULTILINE) for block in _FENCE.finditer(text))
    joined = f"{text}\n{fenced}".replace("\\\n", " ")
    for line in re.findall(r"^ {4,}(.*)$", joined, re.MULTILINE):
        yield re.split(r" #|\||<|>(?!\S*')", line)[0].strip()


def _wrong_commands(path: Path) -> Iterator[str]:
    known = _commands()
    text = path.read_text(encoding="utf-8")
    inline = [code.strip("`") for code in _INLINE_CODE.findall(_FENCE.sub("", text))]
    for line in (*_shell_lines(text), *inline):
        words = line.replace("'", "").replace('"', "").split()
        if not words or words[0] not in ("mirror", ".venv/bin/mirror") or len(words) == 1:
            continue
        here: tuple[str, ...] = ()
        for word in words[1:]:
            if (*here, word.split("|")[0]) not in known:
                break
            here = (*here, word.split("|")[0])
        if not here and words[1] not in ("...", "COMMAND") and not words[1].startswith("--"):
            yield f"{line}: there is no such command"
        following = words[1 + len(here) :]
        if here and following and re.fullmatch(r"[a-z]+", following[0]) and "..." not in known[here]:
            yield f"{line}: {' '.join(here)} takes no word {following[0]}"
        options = {word.split("=")[0].split("/")[0].rstrip("],.;") for word in words if word.startswith("--")}
        for option in options - known[here] if here else ():
            yield f"{line}: {' '.join(here)} has no option {option}"


def test_every_command_of_the_documents_exists_with_its_options() -> None:
    assert _of_each_document(_wrong_commands) == {}


def test_every_task_of_the_run_script_in_the_documents_exists() -> None:
    listed = re.findall(r"^  ([a-z][a-z0-9-]+) {2,}", (PROJECT / "run").read_text(encoding="utf-8"), re.MULTILINE)
    known = {*listed, "help"}
    task = re.compile(r"\./run ([a-z][a-z0-9-]*)")

    assert _of_each_document(lambda path: set(task.findall(path.read_text(encoding="utf-8"))) - known) == {}


@cache
def _error_classes() -> dict[str, type[MirrorError]]:
    """Every error of the package by its reason code; those of local development are left out."""
    for module in pkgutil.walk_packages(mirror_lib.__path__, "mirror_lib."):
        if not module.name.startswith(("mirror_lib.features.demo", "mirror_lib.ledger.migrations")):
            importlib.import_module(module.name)
    found: dict[str, type[MirrorError]] = {}
    waiting: list[type[MirrorError]] = [MirrorError]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        # The demo's own speak of processes of this machine.
        own = ("mirror_lib.features.demo", "mirror_lib.processes")
        if kind.__module__.startswith("mirror_lib.") and not kind.__module__.startswith(own):
            found[kind.reason] = kind
    return found


def _sections(text: str) -> dict[str, str]:
    """The text below each heading of the third level, by the heading."""
    parts = re.split(r"^### +(.+?) *$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_reason_code_is_explained_with_what_to_see_and_what_to_do() -> None:
    sections = _sections(_TROUBLESHOOTING.read_text(encoding="utf-8"))

    reasons = _error_classes()
    missing = [reason for reason in reasons if f"`{reason}`" not in sections]
    assert missing == []
    for reason, kind in reasons.items():
        body = " ".join(sections[f"`{reason}`"].split())
        for part in ("**Means**", f"Exit code {kind.exit_code}.", "**See**", "**Do**"):
            assert part in body, f"{reason}: {part}"


def test_no_reason_code_is_explained_that_does_not_exist() -> None:
    text = _TROUBLESHOOTING.read_text(encoding="utf-8")
    reasons = text.split("\n## Reason codes\n")[1].split("\n## ")[0]

    assert {heading.strip("`") for heading in _sections(reasons)} - _error_classes().keys() == set()
