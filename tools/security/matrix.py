"""All login mechanisms, one after the other, with the same two brokers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Collection, Sequence
from pathlib import Path

import javaproperties

from tests.support.security.kerberos_client import kerberos_site, with_kerberos
from tests.support.security.secure_cluster import SecureCluster
from tools.security.brokers import Brokers, Log, running
from tools.security.flow_tasks import Row, try_tasks
from tools.security.results import TaskResult, WayResult
from tools.security.ways import WAYS, Way, properties

_PROJECT = Path(__file__).resolve().parents[2]
_ROW_SECONDS = 600.0
#: One Spark job is enough: a mechanism for which executors get a secret, and fetch tokens with it.
SPARK_WAY = Way("SASL_SSL", "OAUTHBEARER")


def run(
    ways: Sequence[Way], folder: Path, results: list[WayResult], log: Log, *, by_spark: Collection[Way] = WAYS
) -> None:
    """Test every mechanism; each result is added to `results` at once, so that an interruption loses nothing.

    Args:
        by_spark: the mechanisms for which a Spark job copies, in processes that have only what a task gets; for all
            others threads of this process do.

    Raises:
        MirrorError: a broker could not be fetched or started.
        KerberosClientError: a client for Kerberos could not be built.
    """
    kerberos = any(way.needs_kerberos for way in ways)
    site = kerberos_site(log) if kerberos else None
    with running(folder, log, kerberos=kerberos) as brokers:
        for number, way in enumerate(ways):
            log(way.name)
            row = _row(way, number, folder, brokers, spark=way in by_spark)
            result = _in_child(row, brokers, site) if way.needs_kerberos and site is not None else _here(row, log)
            results.append(result)
            for each in result.tasks:
                if each.failure is not None:
                    log(f"  {each.task}: {each.failure}")


def _row(way: Way, number: int, folder: Path, brokers: Brokers, *, spark: bool) -> Row:
    home = folder / f"way{number}"
    home.mkdir()
    topic, group = f"orders-{number}", f"readers-{number}"
    aliases = {f"from{number}": brokers.source, f"to{number}": brokers.target}
    source, target = aliases
    settings = {
        "clusters": f"{source}, {target}",
        **_cluster(source, aliases[source], way, brokers, source=True),
        **_cluster(target, aliases[target], way, brokers, source=False),
        f"{source}->{target}.enabled": "true",
        f"{source}->{target}.topics": topic,
        f"{source}->{target}.groups": group,
        "sync.group.offsets.enabled": "true",
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "checkpoints.topic.replication.factor": "1",
        "heartbeats.topic.replication.factor": "1",
        f"{target}.offset.storage.replication.factor": "1",
        f"{target}.offset.storage.partitions": "5",
        "mirror.retry.max.seconds": "30",
        "mirror.ledger.url": f"sqlite:///{home}/ledger.sqlite3",
    }
    path = home / "mirror.properties"
    path.write_text(javaproperties.dumps(settings, timestamp=False), encoding="ascii")
    return Row(
        way.name,
        path,
        brokers.source.cluster.bootstrap_servers,
        brokers.target.cluster.bootstrap_servers,
        topic,
        group,
        spark,
    )


def _cluster(alias: str, cluster: SecureCluster, way: Way, brokers: Brokers, *, source: bool) -> dict[str, str]:
    servers = {"bootstrap.servers": cluster.cluster.bootstrap_servers_of(way.listener)}
    found = {**servers, **properties(way, brokers.material, source=source)}
    return {f"{alias}.{name}": value for name, value in found.items()}


def _here(row: Row, log: Log) -> WayResult:
    began = time.monotonic()
    result = WayResult(row.way)
    for each in try_tasks(row):
        result.tasks.append(each)
        log(f"  {each.task}: {each.cell}")
    result.seconds = time.monotonic() - began
    return result


def _in_child(row: Row, brokers: Brokers, site: Path) -> WayResult:
    environment = with_kerberos(os.environ, site)
    if brokers.realm is not None:
        environment |= brokers.realm.environment
    done = subprocess.run(
        [sys.executable, "-m", "tools.security.row", row.to_json()],
        cwd=_PROJECT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_ROW_SECONDS,
        check=False,
    )
    try:
        return WayResult.from_dict(json.loads(done.stdout.splitlines()[-1]))
    except (ValueError, IndexError):
        return WayResult(row.way, [TaskResult("topics", f"exit code {done.returncode}: {done.stderr[-2_000:]}")])
