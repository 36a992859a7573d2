"""What the model has found, over all its runs, under the code that it found it in."""

from pathlib import Path

import pytest

from tools.model.results import Results, tree_hash


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "checkout"
    for folder in ("mirror_lib", "spark_jobs", "tools/model"):
        (made / folder).mkdir(parents=True)
        (made / folder / "one.py").write_text("here = 1\n")
    return made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "results.jsonl"


def _add(results: Results, seed: int, *, violation: str | None = None, without: tuple[str, ...] = ()) -> None:
    results.add(seed=seed, length=50, steps=50, seconds=1.0, without=without, violation=violation)


def test_steps_of_all_runs_under_the_same_code_count(file: Path, root: Path) -> None:
    _add(Results(file, root), 1)
    _add(Results(file, root), 2, violation="missing: one")
    # A protection was left out, and a crash has cut a line.
    _add(Results(file, root), 3, without=("fence",))
    with file.open("a", encoding="utf-8") as lines:
        lines.write('{"code": "x", "ste\n')

    found = Results(file, root)

    assert found.steps() == 100
    assert found.summary(20000).startswith("100 of 20,000 steps under this code (")
    assert found.summary().endswith(" in 2 sequences, 1 with a violation")
    assert found.tried(50) == {1, 2}
    assert found.tried(25) == set()


def test_given_another_code_then_steps_before_it_do_not_count_until_it_is_back(file: Path, root: Path) -> None:
    _add(Results(file, root), 1)
    for folder in ("mirror_lib", "spark_jobs"):
        (root / folder / "one.py").write_text("here = 2\n")
        assert Results(file, root).steps() == 0, folder

        (root / folder / "one.py").write_text("here = 1\n")
        assert Results(file, root).steps() == 50, folder


def test_given_another_model_then_steps_count_and_seeds_are_tried_again(file: Path, root: Path) -> None:
    _add(Results(file, root), 1)
    (root / "tools/model/one.py").write_text("here = 2\n")

    found = Results(file, root)

    assert found.steps() == 50
    assert found.tried(50) == set()


def test_the_hash_is_of_names_and_contents_but_not_of_compiled_modules(root: Path) -> None:
    before = tree_hash(root, "mirror_lib")
    (root / "mirror_lib" / "__pycache__").mkdir()
    (root / "mirror_lib" / "__pycache__" / "one.pyc").write_bytes(b"compiled")
    assert tree_hash(root, "mirror_lib") == before

    (root / "mirror_lib" / "one.py").rename(root / "mirror_lib" / "two.py")
    assert tree_hash(root, "mirror_lib") != before
