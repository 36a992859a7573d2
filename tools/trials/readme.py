"""The example of README.md: an audit of a copy by MirrorMaker 2 into which faults were planted.

Records have fixed timestamps, so that the text changes only if the command's output does.
"""

from __future__ import annotations

import re
from contextlib import ExitStack
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

from tests.support.kafka import create_topic
from tools.trials.auditing import brokers, run
from tools.trials.campaign import clusters
from tools.trials.mirror_makers import copy_once
from tools.trials.planted_mm import FILTER, MARK
from tools.trials.planter import LARGE, SMALL, write
from tools.trials.records import PLAIN, foreign
from tools.trials.scene import Scene, TrialError

BEGIN, END = "<!-- audit example -->", "<!-- end of the audit example -->"
_README = Path(__file__).resolve().parents[2] / "README.md"
_TOPIC, _ALIAS = "orders", "old"
_COUNT = 100_000
#: What a filter of MirrorMaker removes.
_LOST = 47_112
#: The heading of the table, and how the verdict begins; between them is what to do, which is long.
_FINDINGS, _VERDICT = "findings", "Wrong: "
_SHOWN = "mirror audit --source old-1:9092 --target new-1:9092"


def write_example(folder: Path) -> str:
    """Make the copy, audit it, and write the output into README.md between its marks; return it.

    Raises:
        MirrorError: a cluster or MirrorMaker did not start.
        TrialError: README.md has no marks, or the audit ended in another way than it must.
    """
    with clusters(folder) as pair, ExitStack() as stack:
        scene = Scene(pair.source, pair.target, _TOPIC, folder, source_alias=_ALIAS, stack=stack)
        create_topic(scene.source, _TOPIC)
        records = PLAIN.records(_COUNT)
        records[_LOST] = replace(records[_LOST], headers=((MARK, b"1"),))
        write(scene.source, _TOPIC, LARGE.divided(records[:-1_000]), LARGE.codec)
        write(scene.source, _TOPIC, SMALL.divided(records[-1_000:]), SMALL.codec)
        copy_once(scene, {0: _COUNT - 1}, FILTER)
        last = records[-1].timestamp_ms or 0
        write(scene.target, scene.copy, [records[1_000:1_100], [foreign(n, 0, last) for n in range(2)]])
        printed = run(*brokers(scene), "--topics", _TOPIC, "--wait", "0")
    if printed.returncode != 3:
        raise TrialError(f"mirror audit ended with {printed.returncode}: {printed.stderr}")
    text = example(printed.stdout)
    _README.write_text(between_marks(_README.read_text(encoding="utf-8"), text), encoding="utf-8")
    return text


def example(printed: str) -> str:
    """Return the findings and the verdict of what the command printed, as a block of Markdown.

    Raises:
        TrialError: it printed no findings.
    """
    lines = printed.splitlines()
    if _FINDINGS not in lines:
        raise TrialError(f"mirror audit printed no table of {_FINDINGS}: {printed}")
    table = takewhile(lambda line: line.startswith((_FINDINGS, "topic ", _TOPIC)), lines[lines.index(_FINDINGS) :])
    shown = [*table, *(each for each in lines if each.startswith(_VERDICT))]
    return "\n".join(f"    {line}".rstrip() for line in (f"$ {_SHOWN}", *shown))


def between_marks(readme: str, text: str) -> str:
    """Return the document with the text between its marks.

    Raises:
        TrialError: it has no marks.
    """
    marks = re.compile(f"{re.escape(BEGIN)}\n.*?{re.escape(END)}", re.DOTALL)
    if not marks.search(readme):
        raise TrialError(f"README.md has no {BEGIN}, or no {END} behind it")
    return marks.sub(lambda _: f"{BEGIN}\n\n{text}\n\n{END}", readme, count=1)
