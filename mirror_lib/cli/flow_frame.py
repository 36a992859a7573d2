"""The common part of all commands about one flow: their options, and the flow as it runs now."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from mirror_lib.cli.flow_options import ConfigOption, FlowOption
from mirror_lib.cli.output import JsonOption, Output, Progress, report_errors
from mirror_lib.config.model import FlowConfig, MirrorConfig
from mirror_lib.config.topology import flow_topology
from mirror_lib.ledger.handovers import load_flow_as_it_runs
from mirror_lib.ledger.location import existing_ledger, open_ledger
from mirror_lib.ledger.store import Ledger
from mirror_lib.topology.flow_topology import FlowTopology

_Done = TypeVar("_Done")
_READING = "Reading both clusters of"


class FlowCommand:
    """A command about one flow; the file is read when it is first needed, after the command has checked its options.

    Attributes:
        config: the properties file.
        flow: the flow's name, as the operator wrote it.
    """

    def __init__(self, output: Output, config: Path, flow: str) -> None:
        self.output = output
        self.config = config
        self.flow = flow

    @cached_property
    def _loaded(self) -> tuple[MirrorConfig, FlowConfig]:
        return load_flow_as_it_runs(self.config, self.flow)

    @property
    def file(self) -> MirrorConfig:
        """The file as it runs now."""
        return self._loaded[0]

    @property
    def settings(self) -> FlowConfig:
        """The flow, without the topics that cutovers have handed over."""
        return self._loaded[1]

    def topology(self, topics: Sequence[str] | None = None) -> FlowTopology:
        """Return the topology of the flow, limited to topics; None and an empty sequence mean all."""
        return flow_topology(self.settings, topics or ())

    def progress(self, doing: str = _READING) -> AbstractContextManager[Progress]:
        """Show progress; `doing` is the text before the flow's name."""
        return self.output.progress(f"{doing} {self.settings.flow}")

    @contextmanager
    def ledger(self, doing: str = _READING) -> Iterator[Ledger]:
        """Open the ledger, and show progress."""
        with open_ledger(self.file) as ledger, self.progress(doing):
            yield ledger

    @contextmanager
    def known_ledger(self, doing: str = _READING) -> Iterator[Ledger | None]:
        """As `ledger`, but a ledger that does not exist is not created."""
        with existing_ledger(self.file) or nullcontext() as known, self.progress(doing):
            yield known

    def carry_out(
        self,
        step: Callable[[FlowConfig, FlowTopology, Ledger | None], _Done],
        topics: Sequence[str] | None,
        doing: str = _READING,
    ) -> _Done:
        """Plan or apply a sync step of the flow, limited to topics."""
        topology = self.topology(topics)
        with self.known_ledger(doing) as known:
            return step(self.settings, topology, known)


@contextmanager
def flow_command(config: ConfigOption, flow: FlowOption, as_json: JsonOption = False) -> Iterator[FlowCommand]:
    """The frame around a command about one flow; see `report_errors`."""
    with report_errors(as_json) as output:
        yield FlowCommand(output, config, flow)
