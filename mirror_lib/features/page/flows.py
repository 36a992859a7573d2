"""The flows of the page: those of the configuration files that Airflow serves, reloaded when they change."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mirror_lib.config.file.served import served_files
from mirror_lib.config.file.stamps import are_unchanged
from mirror_lib.config.loader import InvalidConfigurationError, ReadablePart, load_readable
from mirror_lib.config.model import FlowConfig, MirrorConfig
from mirror_lib.config.schedule import longest_interval_seconds
from mirror_lib.config.secrets.lookup_context import without_lookups
from mirror_lib.config.settings.mirror_keys import LEDGER_URL
from mirror_lib.errors import LedgerError, MirrorError
from mirror_lib.ledger.location import existing_ledger, ledger_url, open_ledger
from mirror_lib.ledger.store import Ledger
from mirror_lib.past_runs.airflow_runs import BROKEN_FILES_DAG, dag_id_of, verify_dag_id_of


@dataclass(frozen=True, slots=True)
class ServedFlow:
    """One flow and its DAGs."""

    settings: FlowConfig
    config: MirrorConfig
    dag_id: str
    verify_dag_id: str
    #: Maximum time between two runs; None if runs are started by hand.
    interval_seconds: float | None
    #: True if its file has errors: then every run fails.
    broken: bool = False

    @property
    def name(self) -> str:
        """`A->B`, as in the ledger."""
        return str(self.settings.flow)

    @property
    def stale_after_seconds(self) -> float:
        """The age at which an observation is stale: three runs should have come since."""
        return 3 * (self.interval_seconds if self.interval_seconds is not None else _BY_HAND_SECONDS)


#: Runs that follow each other take some time, too.
_SHORTEST_INTERVAL_SECONDS = 60.0
#: Operators who start runs by hand check the page about once a day.
_BY_HAND_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class FileProblem:
    """A problem of a configuration file. Its text may name everything in the file."""

    error: MirrorError
    #: DAGs that a visitor must be allowed to read to see the text.
    dag_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Served:
    """All flows, and why some files have none."""

    flows: tuple[ServedFlow, ...]
    problems: tuple[FileProblem, ...]
    files: tuple[Path, ...]

    def by_dag(self, dag_id: str) -> ServedFlow | None:
        """Return the flow of a DAG, its own or that of its verification."""
        return next((flow for flow in self.flows if dag_id in (flow.dag_id, flow.verify_dag_id)), None)


class FlowSource:
    """Reads configuration files and opens ledgers, each once for as long as nothing changes. Threads may share it."""

    def __init__(self, environment: Mapping[str, str], project: Path) -> None:
        self._environment = environment
        self._project = project
        self._files_lock = threading.Lock()
        #: A separate lock, since a database that does not respond blocks the thread that opens it.
        self._ledgers_lock = threading.Lock()
        self._files: dict[Path, ReadablePart | InvalidConfigurationError] = {}
        self._ledgers: dict[str, Ledger] = {}

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment with the paths of the files."""
        return self._environment

    def read(self) -> Served:
        """Return the flows of the present files, by name.

        A broken file is a problem, not an error: its readable flows are shown, but not with another ledger than their
        own.
        """
        files = tuple(served_files(self._environment, self._project))
        flows: dict[str, ServedFlow] = {}
        problems: list[FileProblem] = []
        for path in files:
            readable = self._readable(path)
            if isinstance(readable, MirrorError):
                # It is unknown whose flows it has.
                problems.append(FileProblem(readable, (BROKEN_FILES_DAG,)))
                continue
            config, broken = readable
            if broken is not None:
                named = tuple(dag_id_of(each.flow) for each in config.enabled_flows)
                problems.append(FileProblem(broken, named or (BROKEN_FILES_DAG,)))
                if LEDGER_URL in broken.keys_in_error:
                    continue
            for settings in config.enabled_flows:
                dag_id = dag_id_of(settings.flow)
                flows.setdefault(
                    dag_id,
                    ServedFlow(
                        settings=settings,
                        config=config,
                        dag_id=dag_id,
                        verify_dag_id=verify_dag_id_of(settings.flow),
                        interval_seconds=longest_wait_seconds(settings.periodic_schedule),
                        broken=broken is not None,
                    ),
                )
        ordered = sorted(flows.values(), key=lambda flow: flow.name)
        return Served(flows=tuple(ordered), problems=tuple(problems), files=files)

    def ledger(self, config: MirrorConfig, *, create: bool = False) -> Ledger | None:
        """Return the ledger of a configuration, None if it does not exist yet.

        Args:
            config: of the ledger.
            create: create it if it does not exist.

        Raises:
            LedgerError: it cannot be used.
        """
        url = ledger_url(config)
        with self._ledgers_lock:
            known = self._ledgers.get(url)
            if known is None:
                known = open_ledger(config) if create else existing_ledger(config)
                if known is not None:
                    self._ledgers[url] = known
            elif existing := _missing_sqlite_file(url):
                # If it were opened again, the file would be recreated empty.
                self._ledgers.pop(url).close()
                raise LedgerError(
                    f"ledger file {existing} does not exist any more.",
                    action="Restore it from a backup, or run a flow, which creates a new ledger.",
                )
            return known

    def _readable(self, path: Path) -> ReadablePart | InvalidConfigurationError:
        with self._files_lock:
            known = self._files.get(path)
        if known is not None and are_unchanged(known.sources):
            return known
        try:
            # The page connects to no cluster.
            with without_lookups():
                read: ReadablePart | InvalidConfigurationError = load_readable(path.absolute())
        except InvalidConfigurationError as error:
            read = error
        with self._files_lock:
            self._files[path] = read
        return read


def _missing_sqlite_file(url: str) -> Path | None:
    prefix = "sqlite:///"
    path = Path(url.removeprefix(prefix)) if url.startswith(prefix) else None
    return path if path is not None and not path.exists() else None


def longest_wait_seconds(schedule: str | None) -> float | None:
    """Return the longest time between two runs of `mirror.schedule`, at least a minute; None for runs by hand."""
    longest = 0.0 if schedule == "@continuous" else longest_interval_seconds(schedule)
    return None if longest is None else max(longest, _SHORTEST_INTERVAL_SECONDS)
