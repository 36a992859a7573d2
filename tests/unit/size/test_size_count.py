"""Lines of sources by what is on them."""

from __future__ import annotations

from pathlib import Path

from tools.size.count import Size, core_of, count_packages, count_source

_MODULE = '''\
"""What it is.

More of it."""

import os  # not a comment line

# Why.
TEXT = """
# no comment
"""


def work() -> str:
    """Return the folder."""
    return (
        os.getcwd()
    )
'''


def test_each_line_is_code_a_docstring_a_comment_or_blank() -> None:
    assert count_source(_MODULE) == Size(files=1, code=8, docstrings=4, comments=1, blanks=4)
    assert count_source(_MODULE).lines == len(_MODULE.splitlines())


def test_packages_features_and_the_core_are_counted_apart(tmp_path: Path) -> None:
    for path in ("mirror_lib/a.py", "mirror_lib/sync/b.py", "mirror_lib/features/verify/c.py", "dags/d.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("here = 1\n")

    sizes = count_packages(tmp_path, ("mirror_lib", "dags"))

    assert {name: size.code for name, size in sizes.items()} == {
        "mirror_lib": 1,
        "mirror_lib/sync": 1,
        "mirror_lib/features/verify": 1,
        "dags": 1,
    }
    assert core_of(sizes) == Size(files=2, code=2)
