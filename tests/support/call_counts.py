"""How often functions of a client were called: requests are what thousands of topics, groups or ACLs must not cost."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest


def counted(monkeypatch: pytest.MonkeyPatch, owner: type, *names: str) -> Counter[str]:
    """Return the number of calls of methods of a class from now on, by their names."""
    calls: Counter[str] = Counter()

    def count(name: str) -> None:
        original = getattr(owner, name)

        def call(*args: Any, **more: Any) -> Any:
            calls[name] += 1
            return original(*args, **more)

        monkeypatch.setattr(owner, name, call)

    for name in names:
        count(name)
    return calls
