"""The short form of fuzzing: some thousand cases of every kind of input that comes from outside."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from mirror_lib.errors import OversizedBatchError
from mirror_lib.outside_limits import BATCH_BODY_BYTES
from mirror_lib.records.compression.codecs import CodecError, decompress
from tools.fuzz.__main__ import main
from tools.fuzz.child import case
from tools.fuzz.model import Kind, Target
from tools.fuzz.targets import TARGETS
from tools.fuzz.targets_of_logs import bombs

#: Quick ones: what needs a ledger or Airflow is fuzzed by `./run fuzz`, and by tests of its own.
QUICK = [target for target in TARGETS if target.name not in ("airflow-forms", "page-requests", "configurations")]


@pytest.mark.parametrize("target", QUICK, ids=lambda target: target.name)
def test_whatever_is_read_the_parser_answers_or_fails_with_an_error_that_it_documents(target: Target) -> None:
    # Targets of little weight start processes or connections for each case.
    for number in range(250 if target.weight > 0.1 else 100):
        data = case(target, 20_26, number)
        try:
            target.run(data)
        except target.errors:
            continue
        except Exception as error:
            pytest.fail(f"case {number} of {target.name}: {type(error).__name__}: {error}\n{data[:2000].hex()}")


def test_bombs_end_in_an_error_in_a_process_of_bounded_memory(tmp_path: Path) -> None:
    """A hundredth of these cases are bombs; the process may grow by less than a gigabyte."""
    found = tmp_path / "found.json"

    code = main(["--targets", "bodies", "--cases", "600", "--keep", str(tmp_path), "--json", str(found)])

    assert code == 0, found.read_text()
    assert "OversizedBatchError" in found.read_text()


def test_no_bomb_becomes_more_than_the_bound_and_each_is_told_from_damage() -> None:
    made, too_large = bombs(), set()
    for number, bomb in enumerate(made):
        for codec in (1, 2, 3, 4):
            try:
                assert len(decompress(codec, bomb)) <= BATCH_BODY_BYTES, (codec, number)
            except OversizedBatchError:
                too_large.add((codec, number))
            except CodecError:
                continue
    assert too_large >= {(1, 0), (4, 3), (3, 5), (2, 6)}


def test_a_snappy_block_that_claims_more_than_its_bytes_can_become_is_damage() -> None:
    with pytest.raises(CodecError, match="45 bytes claims to have 4294967295"):
        decompress(2, bombs()[7])


class Bad(Target):
    """A parser with every fault."""

    name = "bad"
    what = "what fails"

    def make(self, random: Random) -> bytes:
        return random.randbytes(4)

    def run(self, data: bytes) -> str:
        raise KeyError("what no module documents")


def test_an_error_that_is_not_documented_is_a_failure_with_its_place() -> None:
    from tools.fuzz.child import _outcome

    outcome, failure = _outcome(Bad(), b"")

    assert outcome == "UNTYPED KeyError"
    assert failure is not None
    assert failure[0] is Kind.ERROR
    assert "test_fuzz_short.py:" in failure[1]
