"""`./run model`: sequences of what the world does, on real clusters, checked from outside."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from mirror_lib.config.local_state import state_dir
from tools.model import commands
from tools.model.clients import ClientMove
from tools.model.expected import ViolationError
from tools.model.play import Play
from tools.model.protections import PROTECTIONS
from tools.model.results import Results
from tools.model.shrink import shrink
from tools.model.state import Clusters
from tools.model.steps import Step, same_offsets_sequence, sequence, texts_of
from tools.model.times import Times
from tools.model.world import clusters, clusters_of

#: Settling at the end takes as long as fifteen steps.
_LENGTH = 50


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments; wrong ones end the process with exit code 2."""
    parser = argparse.ArgumentParser(prog="model", description=__doc__)
    parser.add_argument(
        "--steps",
        type=int,
        metavar="N",
        help="Run until the results file has N steps of this code (with --without: N more steps).",
    )
    parser.add_argument(
        "--seeds", type=_seeds, default=range(1, 1 << 30), metavar="A..B", help="Range of seeds, both included."
    )
    parser.add_argument("--minutes", type=float, metavar="M", help="Start no sequence after this time.")
    parser.add_argument("--length", type=int, default=_LENGTH, metavar="N", help=f"Steps of a sequence ({_LENGTH}).")
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        choices=sorted(PROTECTIONS),
        metavar="PROTECTION",
        help=f"Disable a protection: {', '.join(PROTECTIONS)}.",
    )
    parser.add_argument(
        "--same-offsets", action="store_true", help="Flows with mirror.offsets=same, and what they do not refuse."
    )
    parser.add_argument("--times", action="store_true", help="Print the duration of each kind of step at the end.")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="Run the steps of this file (JSON).")
    parser.add_argument(
        "--shrink-seconds", type=float, default=240, metavar="S", help="Maximum time to shrink a failure (240)."
    )
    parser.add_argument(
        "--clients", type=int, metavar="N", help="Instead: cutovers with N groups of Java and librdkafka consumers."
    )
    parser.add_argument("--results", type=Path, metavar="FILE", help="Results file (default: in the state folder).")
    parser.add_argument("--parallel", type=int, default=1, metavar="N", help="Run N sequences in parallel (1).")
    parser.add_argument(
        "--on", type=Path, metavar="FOLDER", help="Use the running clusters of this folder; default: start three."
    )
    parser.add_argument("--part", type=_part, metavar="K/N", help="Run only seeds with seed %% N = K.")
    parser.add_argument(
        "--again", action="store_true", help="Run also seeds that the results file contains for this code."
    )
    return parser.parse_args(argv)


def _part(text: str) -> tuple[int, int]:
    part, _, parts = text.partition("/")
    return int(part), int(parts)


def _seeds(text: str) -> range:
    first, _, last = text.partition("..")
    return range(int(first), int(last or first) + 1)


class _Model:
    def __init__(self, arguments: argparse.Namespace, on: Clusters, folder: Path) -> None:
        self._arguments, self._folder, self._clusters = arguments, folder, on
        self._results = Results(
            arguments.results
            or state_dir() / "model" / ("same-offsets.jsonl" if arguments.same_offsets else "results.jsonl")
        )
        self._sequence = same_offsets_sequence if arguments.same_offsets else sequence
        self._times = Times()
        self._plays = 0
        self.steps = self.failed = 0

    def all(self) -> int:
        """Play sequence after sequence; return the exit code."""
        chosen, began = self._arguments, time.monotonic()
        if chosen.replay is not None:
            self._one(0, json.loads(chosen.replay.read_text(encoding="utf-8")), shrinks=False)
            return 1 if self.failed else 0
        tried = set() if chosen.again or chosen.without else self._results.tried(chosen.length)
        for seed in chosen.seeds:
            if chosen.minutes is not None and time.monotonic() - began > chosen.minutes * 60:
                break
            if chosen.steps is not None and self._taken() >= chosen.steps:
                break
            part, parts = chosen.part or (0, 1)
            if seed not in tried and seed % parts == part:
                self._one(seed, self._sequence(seed, chosen.length), shrinks=True)
                if self.failed and chosen.without:
                    break
        if chosen.times:
            _log("\n".join(self._times.table()))
        _log(self._results.summary(chosen.steps))
        return 1 if self.failed else 0

    def clients(self) -> int:
        """Play a cutover with real clients for each seed; return the exit code."""
        for seed in self._arguments.seeds:
            name, began = f"c{os.getpid()}x{seed}", time.monotonic()
            try:
                given = self._arguments
                folder = self._folder / name
                move = ClientMove(self._clusters, folder, name, seed=seed, groups=given.clients, without=given.without)
                text = move.play()
            except ViolationError as violation:
                self.failed += 1
                text = f"VIOLATION {violation}"
            _log(f"seed {seed}: {text}; {time.monotonic() - began:.0f} s")
        return 1 if self.failed else 0

    def _taken(self) -> int:
        # Other processes add to the file as well.
        return self.steps if self._arguments.without else self._results.steps()

    def _one(self, seed: int, steps: list[Step], *, shrinks: bool) -> None:
        began, before = time.monotonic(), self.steps
        violation = self._play(steps, verbose=not shrinks, counts=True)
        script: Sequence[Step] = ()
        taken, seconds = self.steps - before, time.monotonic() - began
        _log(f"seed {seed}: {taken} steps, {seconds:.0f} s" + (f", VIOLATION {violation}" if violation else ""))
        if violation is not None:
            self.failed += 1
            script = steps
            if shrinks:
                script, violation = self._shrunk(steps, violation)
            self._show(seed, script, violation)
        self._results.add(
            seed=seed,
            length=len(steps),
            steps=taken,
            seconds=seconds,
            without=self._arguments.without,
            violation=None if violation is None else str(violation),
            script=script,
        )

    def _shrunk(self, steps: Sequence[Step], violation: ViolationError) -> tuple[list[Step], ViolationError]:
        """Return a shorter script, and its violation."""
        newest = violation

        def fails(tried: Sequence[Step]) -> bool:
            nonlocal newest
            found = self._play(tried)
            if found is None or found.kind != violation.kind:
                return False
            newest = found
            return True

        # Later steps cannot have caused it.
        enough = steps if violation.step is None else steps[: violation.step + 1]
        return shrink(enough, fails, self._arguments.shrink_seconds), newest

    def _play(self, steps: Sequence[Step], *, verbose: bool = False, counts: bool = False) -> ViolationError | None:
        self._plays += 1
        # The process id keeps names apart from those of another run on clusters that still exist.
        name = f"m{os.getpid()}x{self._plays}"
        play = Play(self._clusters, self._folder / name, name, without=self._arguments.without, times=self._times)
        try:
            play.begin()
            play.play(steps, self._count if counts else lambda: None)
        except ViolationError as violation:
            violation.add_note("\n".join(play.said))
            return violation
        finally:
            if verbose:
                _log("\n".join(play.said))
            play.end()
            shutil.rmtree(self._folder / name, ignore_errors=True)
        return None

    def _count(self) -> None:
        self.steps += 1

    def _show(self, seed: int, script: Sequence[Step], violation: ViolationError) -> None:
        file = state_dir() / "model" / f"violation-{self._results.code}-{seed}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(list(script), indent=1) + "\n", encoding="utf-8")
        _log("\n".join([str(violation), *getattr(violation, "__notes__", ()), *texts_of(script)]))
        _log(f"{len(script)} steps; repeat: ./run model --replay {file}")


def _in_parallel(argv: Sequence[str] | None, count: int) -> int:
    """Play in several processes, each with its share of the seeds and its own clusters, since sequences restore them;
    return the worst exit code.
    """
    words = [sys.executable, "-m", "tools.model", *(sys.argv[1:] if argv is None else argv)]
    players = [subprocess.Popen([*words, "--part", f"{number}/{count}"]) for number in range(count)]
    try:
        return max(each.wait() for each in players)
    finally:
        for each in players:
            each.terminate()
            each.wait()


def _log(text: str) -> None:
    print(text, flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the model; return 0 without a violation, 1 with one."""
    arguments = parse_arguments(sys.argv[1:] if argv is None else argv)
    signal.signal(signal.SIGTERM, _interrupt)
    commands.prepare()
    folder = Path(tempfile.mkdtemp(prefix="mirror-model-"))
    try:
        if arguments.parallel > 1 and arguments.part is None:
            return _in_parallel(argv, arguments.parallel)
        with nullcontext(clusters_of(arguments.on)) if arguments.on else clusters(folder) as started:
            model = _Model(arguments, Clusters(*started), folder)
            return model.all() if arguments.clients is None else model.clients()
    except KeyboardInterrupt:
        return 130
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
