"""Texts that others choose, where they are shown."""

from __future__ import annotations

import io
import logging
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator

import pytest
import structlog
from confluent_kafka import KafkaError
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from rich.console import Console

from mirror_lib.cli.output import ConsoleOutput
from mirror_lib.cluster.protocol.kafka_errors import error_for_code
from mirror_lib.errors import ConfigurationError, MirrorError, Where
from mirror_lib.features.metrics.exported import Kind, Metric, Sample
from mirror_lib.features.metrics.prometheus import _Collected
from mirror_lib.printable import LINES, Lines, printable
from mirror_lib.printable_errors import printable_error
from mirror_lib.printable_logs import PrintableFormatter, make_logs_printable
from mirror_lib.topology.acls import AclBinding, AclPattern, AclPermission, AclResource

ANY_TEXT = st.text(st.characters(exclude_categories=()))
HOSTILE = "a\x1b[2J\u202e\0\r\nb"


@given(ANY_TEXT, st.sampled_from(["", "\n", LINES]))
def test_what_is_shown_is_printable_and_what_is_printable_stays(text: str, keep: str) -> None:
    shown = printable(text, keep)

    assert all(each.isprintable() or each in keep for each in shown)
    # Lone surrogates are written out too.
    shown.encode()
    assert printable(shown, keep) == shown
    if all(each.isprintable() or each in keep for each in text):
        assert shown == text


def test_the_escape_names_the_character() -> None:
    for character, shown in (("\x1b", r"\x1b"), ("\n", r"\n"), ("\0", r"\x00"), ("\u202e", r"\u202e")):
        assert printable(f"a{character}b") == f"a{shown}b"


def test_a_name_neither_hides_its_log_line_in_airflow_nor_folds_up_what_follows(log: Callable[..., list[str]]) -> None:
    # Airflow's page looks for the marks anywhere in a line, and does not show that line.
    for mark, shown in (("::group::", r":\x3agroup::"), (":::endgroup::", r"::\x3aendgroup::")):
        *_, own = log("mirror_lib.sync", "Group x%s is lost", mark)
        *_, joined = log("mirror_lib.sync", "Group x::%s", mark.lstrip(":"))
        *_, airflows = log("airflow.task", f"{mark}Pre Execute")

        assert own == f"Group x{shown} is lost"
        assert joined == f"Group x{shown.removeprefix(':' if shown.startswith('::') else '')}"
        assert airflows == f"{mark}Pre Execute"


def test_an_error_has_no_control_characters_wherever_it_goes() -> None:
    error = MirrorError(f"group {HOSTILE} is empty.", where=Where(flow="A->B"), action=f"Look at {HOSTILE}.")

    for text in (str(error), error.what, error.args[0], error.action, *map(str, error.attributes().values())):
        assert not set("\x1b\u202e\0\r") & set(text)
    assert error.attributes() == pickle.loads(pickle.dumps(error)).attributes()


def test_a_name_does_not_break_the_line_of_an_error() -> None:
    error = MirrorError("group x\nerror: all is lost", where=Where(topic="a\nb"), action="Look at x\ny.")

    assert str(error) == r"topic a\nb: group x\nerror: all is lost Look at x\ny."
    # A file has several problems, a line each.
    assert "\n" in str(ConfigurationError("two problems:\n  one"))


def test_names_in_a_plan_do_not_break_its_lines() -> None:
    acl = AclBinding(
        AclResource.GROUP, "g\ndelete all", AclPattern.LITERAL, "User:a\nb", "*", "READ", AclPermission.ALLOW
    )

    assert "\n" not in str(acl)


def test_a_broker_s_message_is_one_line() -> None:
    error = error_for_code(KafkaError.UNKNOWN, where=Where(), doing="commit", detail="refused\nerror: all is lost")

    assert r"refused\nerror: all is lost" in str(error)
    assert "\n" not in str(error)


def test_a_log_line_has_no_control_characters() -> None:
    record = logging.LogRecord("mirror_lib", logging.WARNING, "x.py", 1, "Group %s.\nMore.", (HOSTILE,), None)

    formatted = PrintableFormatter("%(levelname)s %(message)s").format(record)
    assert formatted == r"WARNING Group a\x1b[2J\u202e\x00\r\nb." + "\n  More."
    assert record.args == (HOSTILE,)


@pytest.fixture
def log() -> Iterator[Callable[..., list[str]]]:
    """Messages of this process with Airflow's way to format them, by what logs them."""
    before = logging.getLogRecordFactory()
    make_logs_printable()
    lines = io.StringIO()
    handler = logging.StreamHandler(lines)
    # As Airflow's `configure_logging`: it formats the arguments itself.
    steps = [structlog.stdlib.ProcessorFormatter.remove_processors_meta, lambda _logger, _name, event: event["event"]]
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=steps,
            foreign_pre_chain=[structlog.stdlib.PositionalArgumentsFormatter()],
            use_get_message=False,
            pass_foreign_args=True,
        )
    )

    def logged(name: str, message: str, *args: object) -> list[str]:
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        try:
            logger.warning(message, *args)
        finally:
            logger.removeHandler(handler)
        return lines.getvalue().splitlines()

    yield logged
    logging.setLogRecordFactory(before)


class _Named:
    def __str__(self) -> str:
        return HOSTILE


@pytest.mark.parametrize("logger", ["mirror_lib.sync.groups.flow", "spark_jobs.entry"])
@pytest.mark.parametrize(
    ("message", "arguments"),
    [
        ("Group %s", (HOSTILE,)),
        ("Group %s", (_Named(),)),
        ("Group %s, %s", (Lines("a\n" + printable(HOSTILE)), ValueError(HOSTILE))),
        (f"Group {HOSTILE}", ()),
        (f"Group {HOSTILE} %s", ("x",)),
        ("Groups %s", ([HOSTILE],)),
    ],
)
def test_other_programs_handlers_get_no_line_that_a_name_made(
    log: Callable[..., list[str]], logger: str, message: str, arguments: tuple[object, ...]
) -> None:
    first, *others = log(logger, message, *arguments)

    assert first.startswith("Group")
    assert all(line.startswith("  ") for line in others)
    assert all(line.isprintable() for line in (first, *others))


FORGED = "2026-11-28 ERROR all is lost"


class _OwnText(Exception):
    def __str__(self) -> str:
        return f"refused\n{FORGED}\x1b[2J"


class _NoText(Exception):
    def __str__(self) -> str:
        raise ValueError(FORGED)


def _with_note(error: Exception, note: object) -> Exception:
    error.__notes__ = [note]
    return error


def _related(kind: str) -> Exception:
    told = f"refused\n{FORGED}\x1b[2J\u202e"
    alone: dict[str, Exception] = {
        "argument": ValueError(told),
        "own text": _OwnText(),
        "no text": _NoText(),
        "of the system": OSError(5, told, "a\nb"),
        "key": KeyError(_Named()),
        "syntax": SyntaxError(told, ("a\nb", 1, 1, f"x\x1b[2J\n{FORGED}")),
        "decoding": UnicodeDecodeError("utf-8", b"x", 0, 1, told),
        "note": _with_note(ValueError("x"), FORGED),
        "note of lines": _with_note(ValueError("x"), told),
        "note that is no text": _with_note(ValueError("x"), _Named()),
        "group": ExceptionGroup(told, [ValueError("x")]),
        "member": ExceptionGroup("x", [ExceptionGroup("y", [_OwnText()]), ValueError(told)]),
        "member's cause": ExceptionGroup("x", [_caused(ValueError("y"), _OwnText())]),
    }
    return alone[kind]


def _caused(error: Exception, cause: Exception) -> Exception:
    try:
        raise error from cause
    except Exception as raised:
        return raised


def _in_context(error: Exception, context: Exception) -> Exception:
    try:
        try:
            raise context
        finally:
            raise error
    except Exception as raised:
        return raised


_KINDS = (
    *("argument", "own text", "no text", "of the system", "key", "syntax", "decoding", "note", "note of lines"),
    *("note that is no text", "group", "member", "member's cause"),
)
_PLACES: dict[str, Callable[[Exception], Exception]] = {
    "alone": lambda error: _caused(error, ValueError("x")),
    "cause": lambda error: _caused(RuntimeError("x"), error),
    "context": lambda error: _in_context(RuntimeError("x"), error),
    "cause of a context": lambda error: _in_context(RuntimeError("x"), _caused(RuntimeError("y"), error)),
    "cause of a group": lambda error: _caused(ExceptionGroup("x", [ValueError("y")]), error),
}


def _assert_no_forged_line(text: str) -> None:
    for line in text.splitlines():
        assert line.isprintable(), line
        assert not line.lstrip(" |").startswith("2026") or line.startswith("  "), line
    assert text.strip()


@pytest.mark.parametrize("place", _PLACES)
@pytest.mark.parametrize("kind", _KINDS)
def test_no_exception_forges_a_line_wherever_it_is_logged(kind: str, place: str) -> None:
    error = _PLACES[place](_related(kind))
    record = logging.LogRecord("aiokafka.conn", logging.ERROR, "x.py", 1, "No", (), (type(error), error, None))
    shown = [PrintableFormatter().format(record)]

    # Of other programs: Airflow's JSON and its text, Spark's, and Python's own.
    before = logging.getLogRecordFactory()
    try:
        make_logs_printable()
        error = _PLACES[place](_related(kind))
        made = logging.getLogRecordFactory()(
            "aiokafka.conn", logging.ERROR, "x.py", 1, "No", (), (type(error), error, error.__traceback__)
        )
    finally:
        logging.setLogRecordFactory(before)
    shown.append(logging.Formatter().format(made))
    assert made.exc_info
    assert made.exc_info[1] is not None
    shown += traceback.format_exception(made.exc_info[1])
    for each in structlog.tracebacks.extract(*made.exc_info).stacks:
        shown += [each.exc_type, each.exc_value or "-", *(each.exc_notes or ["-"])]

    for text in shown:
        _assert_no_forged_line(text)
    assert any(printable(FORGED) in text for text in shown) or kind in {"key", "no text", "note that is no text"}


def test_what_is_harmless_and_what_cannot_end_stays() -> None:
    harmless = _caused(MirrorError("a"), _with_note(ExceptionGroup("x", [ValueError("y\n  z")]), "  n"))
    assert printable_error(harmless) is harmless

    loop, other = _OwnText(), ValueError("x")
    loop.__cause__, other.__context__ = other, loop
    assert len(list(traceback.TracebackException.from_exception(printable_error(loop)).format())) < 20

    last: Exception = _OwnText()
    for _ in range(5_000):
        following = ValueError("x")
        following.__context__ = last
        last = following
    printable_error(last)
    while last.__context__ is not None:
        assert isinstance(last.__context__, Exception)
        last = last.__context__
    assert str(last).isprintable() or "\n  " in str(last)
    assert type(last).__name__ == "_OwnText"


@pytest.mark.parametrize("logger", ["aiokafka.conn", "py.warnings", "confluent_kafka", "", "uvicorn.access"])
def test_records_of_other_loggers_are_changed_only_if_necessary(log: Callable[..., list[str]], logger: str) -> None:
    make = logging.getLogRecordFactory()
    harmless = make(logger, logging.INFO, "x.py", 1, "%s - %d\n  more", ("a", 3), None)
    assert (harmless.msg, harmless.args) == ("%s - %d\n  more", ("a", 3))
    # uvicorn's formatter unpacks the arguments.
    assert make(logger, logging.INFO, "x.py", 1, "%s - %d", (HOSTILE, 3), None).args == (printable(HOSTILE), 3)
    assert make(logger, logging.INFO, "x.py", 1, "%d", ("x",), None).msg == "%d"

    first, *others = log(logger, "of %s: %s", ValueError(f"a\n{FORGED}"), _Named())
    assert first.startswith("of a")
    assert all(line.startswith("  ") and line.isprintable() for line in others)


def test_what_ends_a_process_or_a_thread_and_a_warning_are_printable() -> None:
    script = (
        "import threading, warnings\n"
        "from mirror_lib.printable_logs import make_output_printable\n"
        "make_output_printable()\n"
        f"bad = 'x\\n{FORGED}\\x1b[2J'\n"
        "warnings.warn(bad)\n"
        "def fail():\n"
        "    raise ValueError('y') from KeyError(bad)\n"
        "thread = threading.Thread(target=fail)\n"
        "thread.start()\n"
        "thread.join()\n"
        "raise RuntimeError('z') from OSError(5, bad)\n"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert done.stderr.count("Traceback") == 2
    assert "UserWarning" in done.stderr
    _assert_no_forged_line(done.stderr)


def test_a_text_with_lines_does_not_forge_a_log_line() -> None:
    error = ValueError("refused\n2026-11-26 ERROR mirror_lib: all is lost")
    record = logging.LogRecord("mirror_lib", logging.WARNING, "x.py", 1, "No: %s", (error,), None)

    first, *others = PrintableFormatter("%(levelname)s %(message)s").format(record).split("\n")

    assert first == "WARNING No: refused"
    assert others == ["  2026-11-26 ERROR mirror_lib: all is lost"]


def test_a_progress_bar_and_a_table_show_names_and_no_markup() -> None:
    shown = io.StringIO()
    console = Console(file=shown, highlight=False, width=200, force_terminal=True, color_system=None)
    output = ConsoleOutput(console, console)

    with output.progress(f"[bold]{HOSTILE}[/bold]") as bar:
        bar.update(1, 2, f"[link=x]{HOSTILE}[/link]")
    output.table("groups", ["group"], [[HOSTILE]])

    text = shown.getvalue()
    # The escapes that rich itself writes move the cursor and erase lines.
    assert "\x1b[2J" not in text
    assert not set("\u202e\0") & set(text)
    assert r"[link=x]a\x1b[2J\u202e\x00\r\nb[/link]" in text


def test_a_label_of_a_metric_has_no_control_characters() -> None:
    metric = Metric("x", Kind.GAUGE, "x", ("group",))
    registry = CollectorRegistry()
    registry.register(_Collected([(metric, [Sample(tuple(HOSTILE for _ in metric.all_labels), 1.0)])]))

    text = generate_latest(registry).decode()

    assert not set("\x1b\u202e\0\r") & set(text)
    assert len(text.splitlines()) == 3
