"""`mirror dev`: two local Kafka clusters for trials, and a warm Spark."""

from __future__ import annotations

from typing import Annotated

import typer

from mirror_lib.cli import Output, begin_with, command_group, report_errors
from mirror_lib.config.local_state import local_config
from mirror_lib.features.demo import jars, stack
from mirror_lib.features.demo.jars import FetchProgress
from mirror_lib.features.demo.stack import ClusterStatus
from mirror_lib.features.warm_spark.driver_host_protocol import DRIVER_HOST_VARIABLE

app = command_group("dev")


@app.command()
@begin_with(report_errors)
def up(
    output: Output,
    warm: Annotated[
        bool,
        typer.Option("--warm", help="Also start a Spark Connect server and a driver host, so that runs start faster."),
    ] = False,
    spark_port: Annotated[
        int | None, typer.Option(help="Port of the Spark Connect server; default 15002, or a free port.")
    ] = None,
) -> None:
    """Download Kafka once, start both clusters in the background, and write a properties file for A->B."""
    with output.progress("Kafka") as progress:

        def show_fetch(now: FetchProgress) -> None:
            progress.update(now.done, now.total, f"Downloading Kafka {now.jar_set}: {now.what}")

        def step(text: str) -> None:
            progress.update(0, None, text)

        clusters = stack.up(report=show_fetch, step=step)
        address = stack.warm_up(port=spark_port, step=step) if warm else stack.warm_address()
    _show(output, clusters)
    output.document({"properties_file": str(local_config())})
    output.note(f"Configuration of the flow A->B: {local_config()}")
    if address is not None:
        output.document({"spark_connect": str(address)})
        output.note(f"Spark Connect: {address} (mirror run --master {address})")
    socket = stack.driver_host_socket()
    if socket is not None:
        output.document({"driver_host": str(socket)})
        output.note(f"Driver host for Airflow's tasks: {DRIVER_HOST_VARIABLE}={socket}")
    output.note("Stop with: mirror dev down")


@app.command()
@begin_with(report_errors)
def down(
    output: Output,
    delete_data: Annotated[bool, typer.Option("--delete-data", help="Also delete their topics and records.")] = False,
) -> None:
    """Stop both clusters and Spark; their data is kept for the next start."""
    with output.progress("Kafka") as progress:
        stopped = stack.down(delete_data=delete_data, step=lambda text: progress.update(0, None, text))
    output.document({"stopped": stopped})
    output.note(f"Stopped: {', '.join(stopped)}." if stopped else "Nothing was running.")


@app.command()
@begin_with(report_errors)
def status(output: Output) -> None:
    """Show both clusters; exit code 1 unless both run."""
    clusters = stack.status()
    _show(output, clusters)
    output.exit_code = 0 if all(cluster.running for cluster in clusters) else 1


@app.command()
@begin_with(report_errors)
def fetch(
    output: Output,
    mirror_maker: Annotated[bool, typer.Option("--mirror-maker", help="Also MirrorMaker 2 and its client.")] = False,
    kafka: Annotated[
        list[str] | None, typer.Option(metavar="VERSION", help="Also brokers of this version; repeatable.")
    ] = None,
) -> None:
    """Download Kafka's jars now, so that later commands need not wait."""
    sets = [jars.kafka_broker(), *((jars.mirror_maker(), jars.mirror_client()) if mirror_maker else ())]
    sets += [jars.kafka_broker(version) for version in kafka or ()]
    folders = {}
    for jar_set in sets:
        with output.progress(f"Downloading Kafka {jar_set.name}") as progress:
            found = jars.fetch(
                jar_set,
                report=lambda now: progress.update(now.done, now.total, f"Downloading Kafka {now.jar_set}: {now.what}"),
            )
        folders[jar_set.name] = str(found)
    output.values("jars", folders)


def _show(output: Output, clusters: tuple[ClusterStatus, ...]) -> None:
    columns = ("name", "bootstrap servers", "running", "pid", "directory")
    output.table(
        "clusters",
        columns,
        # A process id is a name, not a quantity.
        [
            (c.name, c.bootstrap_servers if c.running else None, c.running, c.pid and str(c.pid), c.directory)
            for c in clusters
        ],
    )
