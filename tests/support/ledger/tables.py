"""All tables of the ledger: the core's and those of the project's features."""

from __future__ import annotations

import importlib
from pathlib import Path

from mirror_lib import features
from mirror_lib.ledger.models import METADATA

__all__ = ["METADATA"]

_FEATURES = Path(features.__file__).parent
for _path in sorted([*_FEATURES.glob("*/tables.py"), *_FEATURES.glob("*/tables/*.py")]):
    _parts = _path.relative_to(_FEATURES).with_suffix("").parts
    importlib.import_module(".".join((features.__name__, *_parts)))
