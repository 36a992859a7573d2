"""Names that do not meet."""

from __future__ import annotations

import re
import uuid


def unique_name(prefix: str) -> str:
    """A legal topic name (letters, digits, dashes) that was never used before."""
    return f"{re.sub('[^a-zA-Z0-9]+', '-', prefix)[:60].strip('-')}-{uuid.uuid4().hex[:8]}"
