from __future__ import annotations

from pathlib import Path

from mirror_lib.config.settings.reference import all_definitions, markdown_reference

_DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "configuration.md"


def test_the_document_is_up_to_date() -> None:
    command = "mirror config keys --markdown > docs/configuration.md"
    assert _DOCUMENT.read_text(encoding="utf-8") == markdown_reference(), f"run {command}"


def test_names_are_unique_and_defaults_are_valid() -> None:
    definitions = all_definitions()
    assert len({definition.name for definition in definitions}) == len(definitions)
    for definition in definitions:
        if definition.default is not None:
            definition.parse(definition.default)
