"""The connection between `mirror airflow task` and the Airflow task that started it: lines of JSON through two pipes.

This side asks (XCom values, connections, states of tasks), logs, and reports its result; the DAG file answers each
question with one line. If the other side is gone, this process ends itself, so that no run and no lock outlives its
Airflow task.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import threading
from collections.abc import Mapping
from typing import IO, Any

#: The version of the messages; the DAG file names its own in its first line.
PROTOCOL = 1


class LostAirflowError(ConnectionError):
    """The Airflow task that started this process is gone."""

    def __init__(self) -> None:
        super().__init__("the Airflow task that started this process is gone")


class RefusedByAirflowError(Exception):
    """Airflow could not answer: `not-found`, `denied`, or the name of its exception. Texts may hold secrets."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


class Channel:
    """One task's connection to its Airflow."""

    def __init__(self, requests: IO[str], answers: IO[str]) -> None:
        self._requests = requests
        self._answers: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._lock = threading.RLock()
        self._ended = False
        self.first = self._parse(answers.readline())
        threading.Thread(target=self._read, args=(answers,), name="airflow-answers", daemon=True).start()

    def ask(self, op: str, **fields: Any) -> Any:
        """Return Airflow's answer.

        Raises:
            RefusedByAirflowError: it has none.
            LostAirflowError: nothing is on the other side.
        """
        with self._lock:
            self.send(op, **fields)
            answer = self._answers.get()
        if answer is None:
            raise LostAirflowError
        if (error := answer.get("error")) is not None:
            raise RefusedByAirflowError(str(error))
        return answer.get("value")

    def send(self, op: str, **fields: Any) -> None:
        """Send a message without an answer.

        Raises:
            LostAirflowError: nothing is on the other side.
        """
        line = json.dumps({"op": op, **fields}, default=str)
        try:
            with self._lock:
                self._requests.write(f"{line}\n")
                self._requests.flush()
        except (OSError, ValueError) as error:
            raise LostAirflowError from error

    def end(self, **fields: Any) -> None:
        """Report the result; from then on the other side may go."""
        self._ended = True
        self.send("end", **fields)

    def _read(self, answers: IO[str]) -> None:
        for line in answers:
            self._answers.put(self._parse(line))
        self._answers.put(None)
        if not self._ended:
            # As Airflow's own signal: the task releases its locks.
            os.kill(os.getpid(), signal.SIGTERM)

    @staticmethod
    def _parse(line: str) -> dict[str, Any]:
        read: Mapping[str, Any] = json.loads(line) if line.strip() else {}
        return dict(read)


_current: list[Channel] = []


def use_channel(made: Channel) -> None:
    """Make this the channel of the process."""
    _current[:] = [made]


def channel() -> Channel | None:
    """Return the channel of this process; None if it was not started by an Airflow task."""
    return _current[0] if _current else None
