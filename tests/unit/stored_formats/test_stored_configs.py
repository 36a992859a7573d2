"""Files of the configuration of every version still load, and mean what they meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mirror_lib.config.loader import load
from mirror_lib.former_names import FIELDS, SETTINGS
from tests.stored_formats.config_files import effective_settings
from tests.stored_formats.folder import read_json


def files(folder: Path) -> list[Path]:
    found = sorted((folder / "config").glob("*.properties"))
    assert len(found) >= 2
    return found


def changed(stored: Any, present: Any, where: str = "") -> list[str]:
    """Where something that was stored is otherwise now; what is new since is not looked at."""
    if isinstance(stored, dict) and isinstance(present, dict):
        return [
            each
            for old, value in stored.items()
            for name in (SETTINGS.get(old) or FIELDS.get(old) or old,)
            for each in (changed(value, present[name], f"{where}/{name}") if name in present else [f"{where}/{name}"])
        ]
    return [] if stored == present else [f"{where}: {stored!r} is now {present!r}"]


def test_files_load_with_their_flows(folder: Path) -> None:
    flows = {file.stem: [str(flow.flow) for flow in load(file).enabled_flows] for file in files(folder)}
    assert flows["mirror"] == ["primary->backup"]
    assert flows["most_keys"] == ["berlin->paris", "paris->berlin"]


def test_every_flow_is_configured_as_it_was(folder: Path) -> None:
    for file in files(folder):
        stored = read_json(file.with_suffix(".json"))
        assert stored
        assert changed(stored, effective_settings(file)) == []


def test_the_values_in_the_file_are_those_that_count(folder: Path) -> None:
    checked = 0
    for file in files(folder):
        for name, flow in effective_settings(file).items():
            written = written_for(file, name)
            counting = {key: setting["value"] for key, setting in flow["settings"].items() if key in written}
            assert counting == written
            checked += len(written)
    assert checked > 60


def written_for(file: Path, flow: str) -> dict[str, str]:
    """Our own keys that a file sets for a flow, read by a parser that knows no escapes."""
    lines = (line.partition("=") for line in file.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
    keys = {key.strip(): value.strip() for key, _, value in lines if key.strip()}
    own = {key: value for key, value in keys.items() if key.startswith("mirror.") and "ledger.url" not in key}
    own |= {key.removeprefix(f"{flow}."): value for key, value in keys.items() if key.startswith(f"{flow}.mirror.")}
    return {SETTINGS.get(key, key): value for key, value in own.items()}
