"""All tables of the ledger: the core's and those of the project's features."""

from __future__ import annotations

import importlib
from pathlib import Path

from mirror_lib import features
from mirror_lib.ledger.models import METADATA

__all__ = ["METADATA"]

for _path in sorted(Path(features.__file__).parent.glob("*/tables*")):
    importlib.import_module(f"{features.__name__}.{_path.parent.name}.{_path.stem}")
