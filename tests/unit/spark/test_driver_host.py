"""A driver host gives drivers that are what a process of one's own would be: real processes throughout."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mirror_lib.features.warm_spark.driver_host_protocol import DriverRequest, socket_address
from mirror_lib.features.warm_spark.hosted_driver import NoDriverHostError, ask_for_driver, greeting_of
from mirror_lib.processes import process_facts
from spark_jobs.driver_host import MODULES
from tests.support.spark.driver_hosts import PROJECT, SECONDS, Driver, StandInHost, wait_until

#: Tells what it was started with.
_SELF = """
import json, os, signal, sys
umask = os.umask(0)
os.umask(umask)
print(json.dumps({
    "name": __name__,
    "arguments": sys.argv[1:],
    "environment": dict(os.environ),
    "directory": os.getcwd(),
    "umask": umask,
    "leads its session": os.getsid(0) == os.getpid() == os.getpgid(0),
    "signals": {name: str(signal.getsignal(getattr(signal, name)))
                for name in ("SIGTERM", "SIGINT", "SIGCHLD", "SIGPIPE", "SIGHUP")},
    "descriptors": sorted(int(each) for each in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{each}")),
    "threads": len(os.listdir("/proc/self/task")),
    "found": __import__("importlib.util").util.find_spec("beside") is not None,
}))
print("an error", file=sys.stderr)
"""
_ENDS = """
import os, signal, sys
match sys.argv[1]:
    case "text":
        sys.exit("that is why")
    case "raises":
        raise ValueError("that is why")
    case "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    case "returns":
        pass
    case number:
        sys.exit(int(number))
"""
#: Ends by SIGTERM in order, and says when it is ready for it.
_WAITS = """
import signal, sys, time
from pathlib import Path

def end(number, frame):
    print("in order", flush=True)
    sys.exit(143)

signal.signal(signal.SIGTERM, end)
print("ready", flush=True)
while not Path("go on").exists():
    time.sleep(0.02)
print("went on", flush=True)
sys.exit(5)
"""
_NUMBERS = "import random, uuid; print(random.random(), uuid.uuid4())"
_LOGS = """
import logging
logging.basicConfig(format="job: %(message)s")
logging.warning("once")
"""
#: As every job of ours begins.
_ENTRY = """
import sys, time
from spark_jobs.entry import start

def run(argv, open_session):
    print("ready", flush=True)
    try:
        time.sleep(300)
    finally:
        with open("cleaned up", "w"):
            pass

start(sys.argv[1:], run, copies=True)
"""
_JOBS = {"job": _SELF, "ends": _ENDS, "waits": _WAITS, "draws": _NUMBERS, "logs": _LOGS, "entry": _ENTRY}


@pytest.fixture
def host(tmp_path: Path) -> Iterator[StandInHost]:
    with StandInHost(tmp_path, _JOBS) as running:
        yield running


def _ended(driver: Driver) -> int:
    with driver:
        return driver.process.wait(SECONDS)


def _gone(pid: int) -> bool:
    facts = process_facts(pid)
    return facts is None or not facts.is_alive


def test_a_forked_driver_is_what_a_process_of_its_own_would_be(host: StandInHost) -> None:
    (host.folder / "beside.py").touch()
    request = host.request("job", "--flow", "A->B", SECRET="hush", EMPTY="", ODD="\udcff\n")
    own = subprocess.run(
        [sys.executable, "-m", "job", *request.arguments],
        env=request.environment,
        cwd=request.directory,
        umask=request.umask,
        stdin=subprocess.PIPE,
        capture_output=True,
        start_new_session=True,
        check=True,
    )

    driver = Driver(host.socket, request, host.folder)

    assert _ended(driver) == 0
    forked: dict[str, Any] = json.loads(driver.output)
    assert forked == json.loads(own.stdout)
    assert forked["arguments"] == ["--flow", "A->B"]
    assert forked["environment"] == request.environment
    assert driver.errors == own.stderr.decode() == "an error\n"


def test_its_exit_code_is_told(host: StandInHost) -> None:
    codes = {"0": 0, "3": 3, "returns": 0, "text": 1, "raises": 1, "killed": -9, "300": 44}
    for ends, code in codes.items():
        driver = host.driver("ends", ends)

        assert _ended(driver) == code, ends
        assert ("that is why" in driver.errors) == (ends in ("text", "raises")), ends


def test_it_is_ended_in_order_or_at_once_and_waiting_for_it_ends_in_time(host: StandInHost) -> None:
    with host.driver("waits") as driver:
        wait_until(lambda: "ready" in driver.output)
        assert driver.process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            driver.process.wait(0.01)

        driver.process.terminate()

        assert driver.process.wait(SECONDS) == driver.process.poll() == 143
        assert driver.output.splitlines() == ["ready", "in order"]
    with host.driver("waits") as driver:
        wait_until(lambda: "ready" in driver.output)

        driver.process.kill()

        assert driver.process.wait(SECONDS) == -signal.SIGKILL
        # Nothing is left that this could reach.
        driver.process.terminate()


def test_a_client_that_is_gone_is_noticed_by_the_drivers_own_input(host: StandInHost) -> None:
    driver = host.driver("entry", "--remote=sc://localhost:1", MIRROR_END_WITH_INPUT="1")
    wait_until(lambda: "ready" in driver.output)

    driver.leave()

    wait_until(lambda: _gone(driver.process.pid))
    assert (host.folder / "cleaned up").exists()


def test_a_job_that_does_not_look_at_its_input_runs_on_without_its_client(host: StandInHost) -> None:
    driver = host.driver("waits")
    wait_until(lambda: "ready" in driver.output)

    driver.leave()
    (host.folder / "go on").touch()

    wait_until(lambda: "went on" in driver.output)
    wait_until(lambda: _gone(driver.process.pid))


def test_drivers_share_neither_random_numbers_nor_the_hosts_log(host: StandInHost) -> None:
    found = set()
    for _ in range(3):
        driver = host.driver("draws")
        assert _ended(driver) == 0
        found |= set(driver.output.split())
    assert len(found) == 6

    driver = host.driver("logs")
    assert _ended(driver) == 0
    assert driver.errors == "job: once\n"
    assert "once" not in host.log.read_text()


def test_what_a_driver_is_told_is_on_no_command_line_and_in_no_environment_that_is_listed(host: StandInHost) -> None:
    with host.driver("waits", TOKEN="hush") as driver:
        wait_until(lambda: "ready" in driver.output)

        for pid in (driver.process.pid, host.process.pid):
            for name in ("cmdline", "environ"):
                assert b"hush" not in Path(f"/proc/{pid}/{name}").read_bytes()
    assert "hush" not in host.log.read_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_driver_outlives_its_host_and_still_tells_its_end(host: StandInHost, number: signal.Signals) -> None:
    with host.driver("waits") as driver:
        wait_until(lambda: "ready" in driver.output)

        code = host.end(number)
        (host.folder / "go on").touch()

        assert code == (-number if number == signal.SIGKILL else 0)
        assert driver.process.wait(SECONDS) == 5
        assert "went on" in driver.output


def test_a_host_that_ends_takes_its_socket_away_and_a_killed_ones_is_replaced(host: StandInHost) -> None:
    host.end()
    assert not host.socket.exists()
    host.start()

    host.end(signal.SIGKILL)
    assert host.socket.exists()
    with pytest.raises(NoDriverHostError, match="no response from a driver host"):
        host.driver("ends", "0")
    host.start()

    assert _ended(host.driver("ends", "0")) == 0


def test_only_what_is_listed_is_run_and_only_in_a_folder_that_is_there(tmp_path: Path) -> None:
    with StandInHost(tmp_path, _JOBS, modules=["ends"]) as host:
        with pytest.raises(NoDriverHostError, match="rejected the request: job is not one of ends"):
            host.driver("job")
        plain = host.request("ends", "0")
        request = DriverRequest(plain.module, plain.arguments, plain.environment, str(tmp_path / "gone"), 0)
        with pytest.raises(NoDriverHostError, match=r"rejected the request.*No such file"):
            Driver(host.socket, request, host.folder)
        assert _ended(host.driver("ends", "7")) == 7


def test_a_host_with_other_code_is_not_asked(host: StandInHost, monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps what it has loaded, whatever is installed meanwhile."""
    monkeypatch.setattr("mirror_lib.features.warm_spark.hosted_driver.code_stamp", lambda: "another")

    with pytest.raises(NoDriverHostError, match=r"runs batch-mirror .*, but another is installed"):
        host.driver("ends", "0")


def _greets(path: Path) -> bool:
    try:
        greeting_of(path)
    except NoDriverHostError:
        return False
    return True


def test_one_socket_has_one_host_and_one_of_another_python_is_not_asked(host: StandInHost) -> None:
    with pytest.raises(NoDriverHostError, match="but the driver needs /opt/none"):
        ask_for_driver(host.socket, host.request("ends", "0"), (0, 1, 2), python="/opt/none/python")

    assert "another driver host listens" in _refused_host(host.socket)
    assert _ended(host.driver("ends", "0")) == 0


def test_a_folder_that_others_may_enter_is_trusted_by_neither_side(host: StandInHost) -> None:
    host.socket.parent.chmod(0o750)

    with pytest.raises(NoDriverHostError, match="is accessible to other users"):
        host.driver("ends", "0")
    host.end()
    assert "is accessible to other users" in _refused_host(host.socket)


def test_a_file_that_is_no_socket_is_not_removed(tmp_path: Path) -> None:
    folder = tmp_path / "private"
    folder.mkdir(mode=0o700)
    (folder / "notes").write_text("mine")

    _refused_host(folder / "notes")

    assert (folder / "notes").read_text() == "mine"


@pytest.mark.parametrize(
    ("loaded", "told"), [("starts_threads", "must not have threads"), ("not_installed", "cannot be loaded")]
)
def test_a_host_that_could_not_give_sound_drivers_does_not_start(tmp_path: Path, loaded: str, told: str) -> None:
    text = "import threading as t, time\nt.Thread(target=time.sleep, args=(60,), daemon=True).start()"
    (tmp_path / "starts_threads.py").write_text(text)
    path = tmp_path / "private" / "socket"

    assert told in _refused_host(path, loaded)

    assert not path.exists()


def _refused_host(path: Path, *loaded: str) -> str:
    """What a host says that ends before it listens; it loads these modules and no job."""
    command = "import sys, spark_jobs.driver_host as host; "
    command += f"host.serve.__kwdefaults__['preloaded'] = {loaded!r}; sys.exit(host.main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", command, str(path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(path.parents[1]), str(PROJECT)])},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode == 2, done.stderr
    return done.stderr


def test_clients_that_say_nothing_or_nonsense_make_nobody_wait(host: StandInHost) -> None:
    silent = [_connected(host) for _ in range(3)]
    nonsense = _connected(host)
    nonsense.sendall(b"GET / HTTP/1.1\r\n\r\n")
    other = _connected(host)
    other.sendall(b"\0\0\0\2[]")

    assert _ended(host.driver("ends", "3")) == 3
    for each in (*silent, nonsense, other):
        each.close()
    assert host.process.poll() is None


def _connected(host: StandInHost) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with socket_address(host.socket) as address:
        connection.connect(address)
    return connection


def test_a_socket_may_lie_deep(tmp_path: Path) -> None:
    """An address itself has 107 bytes at the most (unix(7))."""
    deep = tmp_path / ("d" * 120)
    deep.mkdir()

    with StandInHost(deep, _JOBS) as host:
        assert _ended(host.driver("ends", "4")) == 4


def test_the_host_of_our_jobs_has_no_thread_after_it_has_loaded_them(tmp_path: Path) -> None:
    path = tmp_path / "private" / "socket"
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), "MIRROR_DRIVER_HOST": str(path)}
    command = [sys.executable, "-m", "spark_jobs.driver_host"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as host:
        try:
            wait_until(lambda: host.poll() is not None or _greets(path))
            assert len(list(Path(f"/proc/{host.pid}/task").iterdir())) == 1
            checked = subprocess.run([*command, "--check"], env=environment, check=False, timeout=SECONDS)
            assert checked.returncode == 0
            for module in MODULES:
                variables = {**environment, "SPARK_REMOTE": "sc://localhost:1"}
                driver = Driver(path, DriverRequest(module, (), variables, str(tmp_path), 0o022), tmp_path)
                # Its arguments are missing, which the job itself says.
                assert _ended(driver) == 2
                assert "--config" in driver.errors
        finally:
            host.terminate()
        assert host.wait(SECONDS) == 0
    missing = subprocess.run([*command, "--check"], env=environment, check=False, timeout=SECONDS)
    assert missing.returncode == 1
