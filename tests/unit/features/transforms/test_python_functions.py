"""Python functions by their path, found and looked at without importing them."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.features.transforms.model import FunctionKind, FunctionReference, Influence
from mirror_lib.features.transforms.python_functions import (
    NoFunction,
    PythonFunction,
    look_at_function,
    parse_reference,
)

RANDOM, CLOCK, SURROUNDINGS = Influence.RANDOM, Influence.CLOCK, Influence.SURROUNDINGS
Write = Callable[[str], None]


@pytest.fixture
def company(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes the module `company_x.masking`, whose package must not be imported."""
    package = tmp_path / "company_x"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')\n")
    (package / "inner").mkdir()
    (package / "inner" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield lambda text: (package / "masking.py").write_text("raise RuntimeError('imported')\n" + dedent(text)) and None
    assert not [name for name in sys.modules if name.startswith("company_x")]


def found(path: str = "company_x.masking.mask") -> PythonFunction:
    function = look_at_function(path)
    assert isinstance(function, PythonFunction), function
    return function


def missing(path: str = "company_x.masking.mask") -> NoFunction:
    function = look_at_function(path)
    assert isinstance(function, NoFunction), function
    return function


def test_a_path_says_what_the_function_is_given_or_is_refused() -> None:
    for path, reference in [
        ("company.masking.mask", FunctionReference("company.masking", "mask", FunctionKind.DATAFRAME)),
        ("company.masking:mask", FunctionReference("company.masking", "mask", FunctionKind.ARROW)),
        (" masking:mask ", FunctionReference("masking", "mask", FunctionKind.ARROW)),
    ]:
        assert parse_reference(path) == reference, path
        assert str(reference) == path.strip(), path

    for path in ["", "mask", ":mask", "company.:mask", "company..mask", "a-b.mask", "a.class", "a:b:c", "a:b.c"]:
        assert isinstance(parse_reference(path), NoFunction), path


@given(st.text())
def test_any_text_is_a_function_or_none(path: str) -> None:
    assert isinstance(parse_reference(path), (FunctionReference, NoFunction))


def test_a_function_is_found_without_importing_its_package(company: Write) -> None:
    company("def mask(frame):\n    return frame\n")

    function = found()

    assert function.file is not None
    assert function.file.endswith("masking.py")
    assert function.line == 2
    assert function.hints == ()
    assert function.doubts == ()


def test_a_function_in_a_zip_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        archive.writestr("packed_company/__init__.py", "")
        archive.writestr("packed_company/masking.py", "import uuid\ndef mask(frame):\n    return uuid.uuid4()\n")
    monkeypatch.syspath_prepend(str(tmp_path / "packed.zip"))

    assert [hint.what for hint in found("packed_company.masking.mask").hints] == ["uuid.uuid4"]


@pytest.mark.parametrize(
    ("path", "about"),
    [
        ("company_x.maskin.mask", "no Python module company_x.maskin here"),
        ("compny_x.masking.mask", "no Python module compny_x here"),
        ("company_x.masking.deep.mask", "company_x.masking is a module, not a package"),
        ("company_x.masking.msk", "has no function msk"),
        ("company_x.masking.Masker", "is a class"),
        ("company_x.masking.later", "is a coroutine"),
        ("company_x.masking.none", "cannot be called with one argument"),
        ("company_x.masking.two", "cannot be called with one argument"),
        ("company_x.masking.keyword", "cannot be called with one argument"),
    ],
)
def test_what_cannot_be_called_is_refused(company: Write, path: str, about: str) -> None:
    company(
        """
        class Masker: ...
        async def later(frame): ...
        def none(): ...
        def two(frame, other): ...
        def keyword(frame, *, other): ...
        def mask(frame): ...
        """
    )

    assert about in missing(path).sentence


def test_a_name_that_is_nearly_right_is_suggested_and_a_faulty_module_refused_with_its_line(company: Write) -> None:
    company("def mask(frame): ...\n")

    assert missing("company_x.masking.msk").advice == "did you mean mask?"

    company("def mask(frame:\n")

    assert "line 2" in missing().sentence


def test_a_function_takes_one_argument(company: Write, subtests: pytest.Subtests) -> None:
    for signature in [
        "frame",
        "frame, other=1",
        "*frames",
        "frame, /",
        "frame, *, other=1",
        "frame, **options",
        "frame=None",
    ]:
        with subtests.test(signature):
            company(f"def mask({signature}): ...\n")

            assert found().hints == ()


def test_what_may_make_results_differ_is_named_and_nothing_else(company: Write, subtests: pytest.Subtests) -> None:
    for source, what, influence in [
        ("import random\ndef mask(f): return random.random()", "random.random", RANDOM),
        ("import random as r\ndef mask(f): return r.Random().random()", "random.Random", RANDOM),
        ("from random import choice\ndef mask(f): return choice(f)", "random.choice", RANDOM),
        ("def mask(f):\n    import uuid\n    return uuid.uuid4()", "uuid.uuid4", RANDOM),
        ("import secrets\ndef mask(f): return secrets.token_hex()", "secrets.token_hex", RANDOM),
        ("import os\ndef mask(f): return os.urandom(8)", "os.urandom", RANDOM),
        ("import numpy as np\ndef mask(f): return np.random.default_rng()", "numpy.random.default_rng", RANDOM),
        ("import time\ndef mask(f): return time.time()", "time.time", CLOCK),
        ("from datetime import datetime\ndef mask(f): return datetime.now()", "datetime.datetime.now", CLOCK),
        ("import datetime\ndef mask(f): return datetime.date.today()", "datetime.date.today", CLOCK),
        ("from pyspark.sql import functions as F\ndef mask(f): return F.rand()", "pyspark.sql.functions.rand", RANDOM),
        (
            "from pyspark.sql.functions import current_timestamp\ndef mask(f): return current_timestamp()",
            "pyspark.sql.functions.current_timestamp",
            CLOCK,
        ),
        ("def mask(f): return hash(f)", "hash", SURROUNDINGS),
        ("import os\ndef mask(f): return os.environ['A']", "os.environ", SURROUNDINGS),
        ("import uuid\ndef helper(): return uuid.uuid1()\ndef mask(f): return helper()", "uuid.uuid1", RANDOM),
    ]:
        with subtests.test(source):
            company(source)

            hints = found().hints

            assert (what, influence) in [(hint.what, hint.influence) for hint in hints]
            assert {hint.influence for hint in hints} == {influence}

    for source in [
        "import uuid\ndef mask(f): return uuid.uuid5(uuid.NAMESPACE_DNS, f)",
        "import random\ndef other(): return random.random()\ndef mask(f): return f",
        "def random(): return 4\ndef mask(f): return random()",
        "from datetime import datetime\ndef mask(f): return datetime.fromisoformat(f)",
        "import time\ndef mask(f): return time.strptime(f)",
        "from hashlib import sha256\ndef mask(f): return sha256(f)",
        "def mask(f): return f.random.random()",
    ]:
        with subtests.test(source):
            company(source)

            assert found().hints == ()


def test_what_cannot_be_seen_is_said(company: Write, subtests: pytest.Subtests) -> None:
    for source, doubt in [
        ("import functools\ndef make(f): ...\nmask = functools.partial(make)", "made when the module is imported"),
        ("mask = lambda frame: frame", "made when the module is imported"),
        ("from .inner import mask", "imported from company_x.inner.mask"),
        ("from company_x.inner import other as mask", "imported from company_x.inner.other"),
        ("from elsewhere import *", "made when the module is imported"),
        ("import functools\n@functools.cache\ndef mask(frame): ...", "decorators"),
        ("if True:\n    def mask(frame): ...", ""),
    ]:
        with subtests.test(source):
            company(source)

            assert any(doubt in each for each in found().doubts)

    assert found("math.sqrt").doubts == ("its source code is not available",)
