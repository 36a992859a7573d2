"""Fixtures for all tests: real brokers, started once and only when a test asks for them."""

from __future__ import annotations

import gc
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path, PurePath
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

from mirror_lib.features.demo.broker import BrokerStartError, KafkaCluster
from mirror_lib.features.demo.jars import fetch, kafka_broker
from tests.lanes import stray_files
from tests.support.class_archives import jvm_options
from tests.support.clusters import FAST_HOUSEKEEPING, KafkaPair, run_folder, start_together
from tests.support.kafka import delete_topics
from tests.support.names import unique_name
from tests.support.no_skips import NoSkips
from tests.support.timings import SessionTiming, Timings

_HERE = Path(__file__).parent
#: Files of a minute and more by their seconds (`./run test --slowest`). They begin first: a worker that comes to one
#: last leaves the others with nothing to do.
_LONGEST = tuple(
    _HERE / name
    for name in (
        "e2e/test_versions_of_airflow.py",
        "e2e/test_secrets.py",
        "integration/security/test_kerberos_on_brokers.py",
        "e2e/one_airflow/test_bad_day.py",
        "e2e/one_airflow/test_runbook_dags.py",
        "integration/features/cutover/test_disaster.py",
        "e2e/test_spark_cluster.py",
        "integration/copy/transfer/test_replicate_broker_faults.py",
        "integration/access/test_least_privilege.py",
        "integration/spark/test_class_archive.py",
        "e2e/test_demo.py",
        "integration/features/cutover/test_cutover_interrupted.py",
        "integration/features/verify/test_verify_transformed.py",
        "e2e/one_spark/test_transform_flow.py",
        "integration/cli/test_run_command.py",
        "integration/spark/test_transform_frame.py",
        "integration/features/verify/test_verify_flow.py",
        "integration/interop/test_mm2_takes_over.py",
        "integration/features/transforms/copy/test_transformed_transactions.py",
        "integration/copy/transfer/test_poison_policies.py",
        "integration/features/cutover/test_cutover.py",
        "e2e/test_whole_path.py",
        "e2e/test_compose_processes.py",
        "e2e/test_faults_short.py",
        "integration/features/verify/test_verify_routed.py",
        "integration/planning/test_rate_limits.py",
        "integration/copy/losses/test_source_losses.py",
        "integration/cluster/test_admin.py",
        "integration/copy/takeover/test_unclean_start.py",
        "integration/interop/test_mm2_is_taken_over.py",
        "integration/features/transforms/copy/test_transformed_copy.py",
        "integration/spark/test_transform_functions.py",
        "integration/features/backfill/test_backfill.py",
        "integration/sync/test_topologies.py",
        "integration/features/demo/test_clusters.py",
    )
)

#: Folders whose files share what takes long to start, as a fixture of the package: one worker gets them all.
_TOGETHER = ("tests/e2e/one_airflow/", "tests/e2e/one_spark/")

# How long an example takes says something about the machine, and nothing about the code. Continuous integration judges
# changes by the same examples each time; new ones are found on developers' machines, and by `./run fuzz`.
settings.register_profile(
    "project", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize="CI" in os.environ
)
settings.load_profile("project")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of `./run test`."""
    parser.addoption("--no-skips", action="store_true", help="fail if a test is skipped: then it protects nothing")
    parser.addoption("--timings", type=Path, metavar="FOLDER", help="leave there what tests/support/timings.py prints")


def pytest_configure(config: pytest.Config) -> None:
    """A shell gives its background jobs an ignored SIGINT, which they pass on: interrupts are tested all the same."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.update(jvm_options(os.environ))
    folder = config.getoption("timings")
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
        config.pluginmanager.register(Timings(folder))
    if "PYTEST_XDIST_WORKER" not in os.environ:
        _check_files()
        if config.getoption("no_skips"):
            config.pluginmanager.register(NoSkips())
        if folder:
            config.pluginmanager.register(SessionTiming(folder))


def _check_files() -> None:
    """Fail before anything starts: an error that a worker meets later has no message."""
    if gone := [str(path) for path in _LONGEST if not path.is_file()]:
        raise pytest.UsageError(f"tests/conftest.py names files that do not exist: {', '.join(gone)}")
    if stray := stray_files(_HERE):
        raise pytest.UsageError(f"these tests belong to no lane (tests/lanes.py): {', '.join(stray)}")


class _ByFileOrFolder(LoadFileScheduling):  # type: ignore[misc]  # pytest-xdist is untyped here
    def _split_scope(self, nodeid: str) -> str:
        return next((folder for folder in _TOGETHER if nodeid.startswith(folder)), super()._split_scope(nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _ByFileOrFolder | None:
    """`--dist loadfile`, but for what shares more than a file."""
    return _ByFileOrFolder(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """What collection makes stays to the end: the garbage collector need not go through it again with every test."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The folder says what a test needs: integration and e2e tests are marked as such.

    Long files come first, unless somebody asked for a random order (pytest-random-order).
    """
    if str(config.getoption("random_order_seed")).startswith("default:"):
        places = {str(path): place for place, path in enumerate(_LONGEST)}
        items.sort(key=lambda item: places.get(str(item.path), len(places)))
    for item in items:
        folder = _below(item).parts[0]
        if folder in ("integration", "e2e"):
            item.add_marker(folder)


def _below(item: pytest.Item) -> PurePath:
    """The path of a test's file below `tests`; elsewhere the whole path."""
    return item.path.relative_to(_HERE) if item.path.is_relative_to(_HERE) else item.path


@pytest.fixture(scope="session")
def kafka_jars() -> Path:
    """The folder with the jars of a Kafka broker."""
    return fetch(kafka_broker())


@pytest.fixture(scope="session")
def brokers_folder() -> Iterator[Path]:
    """The folder of all clusters of this run; whatever still runs in it is ended at last."""
    with run_folder() as folder:
        yield folder


@pytest.fixture(scope="session")
def kafka_pair(request: pytest.FixtureRequest, kafka_jars: Path, brokers_folder: Path) -> Iterator[KafkaPair]:
    """Two single-broker clusters shared by all tests; use `topic_name` so that tests do not meet."""
    source, target = (
        KafkaCluster(name, directory=brokers_folder / name, jars=kafka_jars, overrides=FAST_HOUSEKEEPING)
        for name in ("source", "target")
    )
    with ExitStack() as running:
        try:
            running.enter_context(start_together(source, target))
        except BrokerStartError as error:
            # Once for all tests, not a thousand times.
            request.session.shouldfail = str(error)
            raise
        _shared.extend((source, target))
        yield KafkaPair(source, target)
        _shared.clear()


#: Clusters of this process that files of tests share while they run. Topics that are left there slow down all that
#: follow: with six hundred of them a small run costs a broker three times as much.
_shared: list[KafkaCluster] = []


@pytest.fixture(autouse=True, scope="module")
def _no_topics_for_the_next_file() -> Iterator[None]:
    yield
    for cluster in _shared:
        delete_topics(cluster)


@pytest.fixture(scope="module")
def _three_brokers(kafka_jars: Path, brokers_folder: Path) -> Iterator[KafkaCluster]:
    # Not for the session: few files need it, and idle brokers work, too.
    folder = brokers_folder / unique_name("three")
    cluster = KafkaCluster("three", directory=folder, brokers=3, jars=kafka_jars, overrides=FAST_HOUSEKEEPING)
    with start_together(cluster):
        yield cluster


@pytest.fixture
def three_brokers(_three_brokers: KafkaCluster) -> KafkaCluster:
    """One cluster of three brokers; a test may kill some, they are started again for the next test."""
    if len(_three_brokers.running_nodes) < 3:
        _three_brokers.start()
    return _three_brokers


@pytest.fixture
def cluster_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder for clusters of one test's own, which it starts and stops itself."""
    yield tmp_path / "kafka"
    shutil.rmtree(tmp_path / "kafka", ignore_errors=True)


@pytest.fixture
def topic_name(request: pytest.FixtureRequest) -> Iterator[str]:
    """A topic name that no other test uses; without dots, which replication policies read as separators.

    Topics of shared clusters that have it in their names are deleted after the test.
    """
    name = unique_name(request.node.name.removeprefix("test_"))
    yield name
    for cluster in _shared:
        delete_topics(cluster, containing=name)
