# Flows of batch-mirror in an Airflow that does not have batch-mirror: Airflow 2.10 or newer, without other packages.
#
# `mirror airflow dag-file` has written this file. It asks the program `mirror` of another environment for the DAGs
# (`mirror airflow describe`), and each task runs there (`mirror airflow task`). Do not edit it: write it again.
from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import tempfile
import threading
from datetime import datetime, timedelta

try:  # Airflow 3
    from airflow.sdk import DAG, Asset, AssetAlias, BaseOperator, Param, Variable, get_parsing_context

    _SDK = True
except ImportError:  # Airflow 2
    from airflow import DAG
    from airflow.datasets import Dataset as Asset
    from airflow.datasets import DatasetAlias as AssetAlias
    from airflow.models import Variable
    from airflow.models.baseoperator import BaseOperator
    from airflow.models.param import Param
    from airflow.utils.dag_parsing_context import get_parsing_context

    _SDK = False
try:
    from airflow.sdk import BaseHook
except ImportError:
    from airflow.hooks.base import BaseHook
try:
    from airflow.sdk.log import mask_secret
except ImportError:
    try:
        from airflow.sdk.execution_time.secrets_masker import mask_secret
    except ImportError:
        from airflow.utils.log.secrets_masker import mask_secret
try:
    from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException
except ImportError:
    from airflow.exceptions import AirflowException, AirflowFailException, AirflowSkipException
try:
    from airflow.sdk.exceptions import DownstreamTasksSkipped
except ImportError:
    try:
        from airflow.exceptions import DownstreamTasksSkipped
    except ImportError:  # Airflow 2 sets the states itself, see _skip_others
        DownstreamTasksSkipped = None

# The program of the other environment, and the configuration files.
MIRROR = "mirror"
FILES = []

_PROTOCOL = 1
_DESCRIBE_SECONDS = 120
# The other side's own grace periods are shorter: it interrupts Spark, and releases the locks of the run.
_GRACE_SECONDS = 45
_log = logging.getLogger(__name__)


class MirrorOperator(BaseOperator):
    """A task of batch-mirror, in another environment."""

    ui_color = "#d7e6f0"

    def __init__(self, *, mirror, files, **kwargs):
        super().__init__(**kwargs)
        self.mirror = mirror
        self.files = files
        self._child = None

    def execute(self, context):
        """Run the task there, answer its questions, and end as it does."""
        asked, requests = os.pipe()
        answers, answered = os.pipe()
        command = [self.mirror, "airflow", "task", *_options(self.files)]
        command += ["--dag", self.dag_id, "--task", self.task_id, "--pipes", "%d,%d" % (answers, requests)]
        try:
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(answers, requests),
                env=_environment(),
                start_new_session=True,
            )
        except OSError as error:
            for descriptor in (asked, answered):
                os.close(descriptor)
            raise AirflowException("%s cannot be started: %s. See MIRROR in the DAG file." % (self.mirror, error))
        finally:
            os.close(answers)
            os.close(requests)
        printed = threading.Thread(target=self._print, args=(self._child.stdout,), daemon=True)
        printed.start()
        end = None
        try:
            with os.fdopen(asked, encoding="utf-8") as questions, os.fdopen(answered, "w", encoding="utf-8") as replies:
                _write(replies, _about(context))
                for line in questions:
                    message = json.loads(line)
                    if message["op"] == "end":
                        end = message
                        break
                    if message["op"] == "log":
                        self.log.log(message["level"], "%s", message["message"])
                        continue
                    _write(replies, self._answer(message, context))
            code = self._child.wait()
        except BaseException:
            # A timeout, or the end of this task.
            self.on_kill()
            raise
        printed.join(10)
        return self._ended(context, end, code)

    def on_kill(self):
        """End the child: it releases the locks of its run, and ends its Spark job."""
        child = self._child
        if child is None or child.poll() is not None:
            return
        for number, seconds in ((signal.SIGTERM, _GRACE_SECONDS), (signal.SIGKILL, 10)):
            try:
                os.killpg(child.pid, number)
            except ProcessLookupError:
                return
            try:
                child.wait(seconds)
                return
            except subprocess.TimeoutExpired:
                continue

    def _print(self, output):
        with output:
            for line in output:
                self.log.info("%s", _shown(line.decode("utf-8", "replace").rstrip()))

    def _answer(self, message, context):
        """Answer a question; errors are named only, since their texts may hold secrets."""
        try:
            return {"value": getattr(self, "_op_" + message["op"])(context, message)}
        except Exception as error:
            kind = type(error).__name__
            if kind == "AirflowNotFoundException" or isinstance(error, KeyError):
                kind = "not-found"
            elif isinstance(error, PermissionError):
                kind = "denied"
            elif kind == "AirflowRuntimeError" and "NOT_FOUND" in str(error):
                kind = "not-found"
            else:
                self.log.warning("Airflow did not answer %s: %s", message["op"], kind)
            return {"error": kind}

    def _op_xcom_pull(self, context, message):
        return context["ti"].xcom_pull(task_ids=message["task"], key=message["key"])

    def _op_xcom_push(self, context, message):
        context["ti"].xcom_push(key=message["key"], value=message["value"])

    def _op_task_state(self, context, message):
        run, ti = context["dag_run"], context["ti"]
        if hasattr(ti, "get_task_states"):
            found = ti.get_task_states(dag_id=run.dag_id, task_ids=[message["task"]], run_ids=[run.run_id])
            state = found.get(run.run_id, {}).get(message["task"])
        else:
            other = run.get_task_instance(message["task"])
            state = None if other is None else other.state
        return None if state is None else str(getattr(state, "value", state))

    def _op_connection(self, context, message):
        found = BaseHook.get_connection(message["name"])
        names = ("conn_type", "host", "login", "password", "schema", "port")
        return dict({name: getattr(found, name) for name in names}, extra=found.extra_dejson)

    def _op_variable(self, context, message):
        return Variable.get(message["name"])

    def _op_mask(self, context, message):
        mask_secret(message["text"])

    def _op_asset_event(self, context, message):
        events = context["outlet_events"][AssetAlias(message["alias"])]
        extra = message["extra"]
        if not _SDK:
            # Airflow 2 puts the values of an event into a set.
            extra = {name: json.dumps(value) if isinstance(value, dict) else value for name, value in extra.items()}
        events.add(Asset(message["uri"]), extra=extra)

    def _ended(self, context, end, code):
        if end is None:
            ended = "by signal %d" % -code if code < 0 else "with exit code %d" % code
            raise AirflowException("%s ended %s before the task was done, see the log above" % (self.mirror, ended))
        outcome, text = end["outcome"], end.get("message")
        if outcome == "success":
            return end.get("value")
        if outcome == "skip":
            raise AirflowSkipException(text)
        if outcome == "skip-others":
            return _skip_others(context, end["tasks"])
        raise (AirflowFailException if outcome == "fail" else AirflowException)(text)


def _skip_others(context, tasks):
    if DownstreamTasksSkipped is not None:
        raise DownstreamTasksSkipped(tasks=tasks)
    # Without SkipMixin's XCom, which would skip a task again that is cleared to run it.
    for other in context["dag_run"].get_task_instances():
        # As Airflow 3 does it: if this task alone was cleared, others may run or have ended.
        if other.task_id in tasks and other.state not in ("running", "success", "failed"):
            other.set_state("skipped")


def _about(context):
    """Return the first line for a task: its run, and the values of its form."""
    run, ti = context["dag_run"], context["ti"]
    triggered = getattr(run, "run_after", None) or getattr(run, "logical_date", None)
    started = getattr(run, "start_date", None)
    return {
        "protocol": _PROTOCOL,
        "dag_id": run.dag_id,
        "run_id": run.run_id,
        "run_type": str(getattr(run.run_type, "value", run.run_type)),
        "triggered": None if triggered is None else triggered.isoformat(),
        "started": None if started is None else started.isoformat(),
        "conf": run.conf or {},
        "params": dict(context["params"]),
        "try_number": ti.try_number,
    }


def _write(replies, message):
    try:
        replies.write(json.dumps(message, default=str) + "\n")
        replies.flush()
    except BrokenPipeError:
        pass  # It has ended, and its exit code says why.


def _shown(text):
    """Return a text without control characters: names from a cluster must not control a terminal or forge a line."""
    shown = "".join(each if each.isprintable() or each in "\n\t" else ascii(each)[1:-1] for each in text)
    return shown.replace("\n", "\n  ")


def _environment():
    """Return the environment of the other Python: without Airflow's own paths."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}


def _options(files):
    return [part for file in files for part in ("--config", file)]


def _seconds(value):
    return None if value is None else timedelta(seconds=value)


def _describe():
    """Return the description of all DAGs: the stored one while no file has changed that it was made from."""
    home = os.environ.get("AIRFLOW_HOME") or os.path.join(os.path.expanduser("~"), "airflow")
    stored = os.path.join(home, "mirror-external", os.path.basename(__file__) + ".json")
    about = {"mirror": MIRROR, "files": FILES, "protocol": _PROTOCOL}
    kept = _stored(stored)
    if kept and kept["about"] == about and all(_stamp(path) == stamp for path, stamp in kept["stamps"].items()):
        return kept["description"]
    command = [MIRROR, "airflow", "describe", *_options(FILES)]
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=_DESCRIBE_SECONDS, env=_environment()
        )
    except OSError as error:
        raise RuntimeError("%s cannot be started: %s. See MIRROR in this file." % (MIRROR, error))
    said = done.stderr.decode("utf-8", "replace").strip()
    if done.returncode != 0:
        raise RuntimeError(said or "%s ended with exit code %d" % (" ".join(command), done.returncode))
    if said:
        _log.warning("%s", _shown(said))
    description = json.loads(done.stdout.decode("utf-8"))
    if description["protocol"] != _PROTOCOL:
        raise RuntimeError(
            "This file is of another version than %s: write it again with `mirror airflow dag-file`." % MIRROR
        )
    stamps = {path: _stamp(path) for path in [*description["sources"], MIRROR]}
    _store(stored, {"about": about, "stamps": stamps, "description": description})
    return description


def _stamp(path):
    try:
        found = os.stat(path)
    except OSError:
        return None
    return [found.st_mtime_ns, found.st_size, found.st_ino]


def _stored(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def _store(path, kept):
    folder = os.path.dirname(path)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        descriptor, written = tempfile.mkstemp(dir=folder)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(kept, file)
        os.replace(written, path)
    except OSError as error:
        _log.info("The description is not kept, and made for each parsing: %s", error)


def _dag(given):
    schedule = given["schedule"]
    with DAG(
        dag_id=given["dag_id"],
        dag_display_name=given["name"],
        description=given["description"],
        doc_md=given["doc_md"],
        schedule=_seconds(schedule["seconds"]) if isinstance(schedule, dict) else schedule,
        start_date=datetime.fromisoformat(given["start_date"]),
        catchup=False,
        max_active_runs=given["max_active_runs"],
        max_consecutive_failed_dag_runs=given["max_consecutive_failed_dag_runs"],
        dagrun_timeout=_seconds(given["dagrun_timeout"]),
        tags=given["tags"],
        params={name: _param(field) for name, field in given["params"].items()},
    ) as dag:
        tasks = {each["task_id"]: _task(each) for each in given["tasks"]}
        for each in given["tasks"]:
            for upstream in each["upstream"]:
                tasks[upstream] >> tasks[each["task_id"]]
    return dag


def _param(field):
    return Param(field["default"], description=field["description"], **field["schema"])


def _task(given):
    more = {
        name: given[name] for name in ("pool", "trigger_rule", "retries", "retry_exponential_backoff") if name in given
    }
    for name in ("retry_delay", "max_retry_delay", "execution_timeout"):
        if given.get(name) is not None:
            more[name] = _seconds(given[name])
    return MirrorOperator(
        task_id=given["task_id"],
        mirror=MIRROR,
        files=FILES,
        owner=given["owner"],
        doc_md=given["doc_md"],
        outlets=[AssetAlias(name) for name in given["outlets"]],
        **more,
    )


# Without files it is the module of batch-mirror that `mirror airflow dag-file` copies.
for _given in _describe()["dags"] if FILES else ():
    if get_parsing_context().dag_id in (None, _given["dag_id"]):
        globals()[_given["dag_id"]] = _dag(_given)
