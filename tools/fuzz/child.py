"""The process that runs the cases of one target, with a memory limit: a case may end only this process.

It prints its findings line by line on its standard output; the number of the current case is in a file, so that the
parent knows which case hung.
"""

from __future__ import annotations

import faulthandler
import json
import re
import resource
import struct
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from mmap import mmap
from pathlib import Path
from random import Random
from typing import Any

from tools.fuzz.model import Failure, Kind, Target, Wrong
from tools.fuzz.targets import target_named

#: Address space beyond what the process has before the first case.
_ADDRESS_SPACE = 3 << 30
#: Memory beyond that. The largest body is read twice, and its records take memory of their own.
LARGEST_GROWTH = 768 << 20
#: Processor time of one case.
SLOWEST_SECONDS = 10.0
_TOLD_EVERY = 500
PROGRESS = struct.Struct(">q")


def case(target: Target, seed: int, number: int) -> bytes:
    """Return the bytes of a case."""
    return target.make(Random(f"{seed}:{target.name}:{number}"))


def main(name: str, seed: int, first: int, stop: int, progress_file: Path) -> None:
    """Run cases [first, stop)."""
    faulthandler.enable()
    warnings.simplefilter("ignore")
    target = target_named(name)
    with progress_file.open("r+b") as file, mmap(file.fileno(), PROGRESS.size) as progress:
        # Memory for imports and objects created on first use does not count as growth.
        for number in range(3):
            _outcome(target, case(target, seed, -1 - number))
        base, address_space = _peak(), _address_space()
        resource.setrlimit(resource.RLIMIT_AS, (address_space + _ADDRESS_SPACE, resource.RLIM_INFINITY))
        outcomes: Counter[str] = Counter()
        reported_peak = base
        for number in range(first, stop):
            PROGRESS.pack_into(progress, 0, number)
            data = case(target, seed, number)
            began = time.process_time()
            outcome, failure = _outcome(target, data)
            outcomes[outcome] += 1
            found = [failure] if failure else []
            peak = _peak()
            if peak > max(base + LARGEST_GROWTH, reported_peak):
                found.append((Kind.MEMORY, f"{(peak - base) >> 20} MiB more than before the first case"))
                reported_peak = peak
            if time.process_time() - began > SLOWEST_SECONDS:
                found.append((Kind.SLOW, f"{time.process_time() - began:.1f} s of processor time"))
            for kind, detail in found:
                _emit(failure=Failure(name, number, seed, kind, detail, b"").to_dict())
            if (number - first + 1) % _TOLD_EVERY == 0 or number + 1 == stop:
                _emit(cases=sum(outcomes.values()), outcomes=dict(outcomes), peak=_peak() - base)
                outcomes.clear()
        _emit(done=True)


def _outcome(target: Target, data: bytes) -> tuple[str, tuple[Kind, str] | None]:
    try:
        return f"read: {target.run(data)}", None
    except Wrong as error:
        return "WRONG", (Kind.WRONG, str(error)[:500])
    except target.errors as error:
        return f"{type(error).__name__}: {_shape(str(error))}", None
    except Exception as error:
        place = error.__traceback__
        while place is not None and place.tb_next is not None:
            place = place.tb_next
        where = "" if place is None else f" ({Path(place.tb_frame.f_code.co_filename).name}:{place.tb_lineno})"
        return f"UNTYPED {type(error).__name__}", (Kind.ERROR, f"{type(error).__name__}: {error}"[:400] + where)


def _shape(text: str) -> str:
    """Return the pattern of an error message, without its values."""
    return re.sub(r"\d+", "N", re.sub(r"'[^']*'|\"[^\"]*\"|b'.*", "…", text))[:80]


def _emit(**what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _address_space() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()


def told_lines(text: str) -> Iterator[dict[str, Any]]:
    """Yield the reports of a child; a line that was cut by its death is skipped."""
    for line in text.splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            continue


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]))
