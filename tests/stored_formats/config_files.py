"""Files of the configuration, each with the effective settings of its flows."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from mirror_lib.config.loader import explain_with_transforms, load
from mirror_lib.config.model import jsonable
from mirror_lib.config.secrets.masking import printable_value
from tests.stored_formats.folder import HERE, write_json

_PROJECT = HERE.parents[1]


def write_config_files(folder: Path) -> None:
    """Copy the examples and the file with most keys, and write what each of their flows is configured to do."""
    folder.mkdir(parents=True)
    for path in (*sorted((_PROJECT / "examples").glob("*.properties")), HERE / "most_keys.properties"):
        copy = folder / path.name
        shutil.copyfile(path, copy)
        write_json(copy.with_suffix(".json"), effective_settings(copy))


def effective_settings(path: Path) -> dict[str, Any]:
    """Settings of every enabled flow: as `mirror config show` lists them, and as the product uses them."""
    return {
        str(flow.flow): {
            "settings": {
                name: {"value": printable_value(name, setting), "origin": setting.origin}
                for name, setting in explain_with_transforms(path, str(flow.flow))[0].items()
            },
            "flow": jsonable(flow),
        }
        for flow in load(path).enabled_flows
    }
