"""What a driver host and its clients say to each other arrives as it was said."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.errors import ConfigurationError
from mirror_lib.features.warm_spark.driver_host_protocol import (
    DriverRequest,
    code_stamp,
    current_umask,
    is_ours,
    python_stamp,
    receive,
    send,
    socket_address,
)

#: Also what is no Unicode, as an environment may hold it (PEP 383).
_TEXT = st.text() | st.text(st.characters(min_codepoint=0xDC80, max_codepoint=0xDCFF))
_REQUESTS = st.builds(
    DriverRequest,
    module=_TEXT,
    arguments=st.lists(_TEXT).map(tuple),
    environment=st.dictionaries(_TEXT, _TEXT),
    directory=_TEXT,
    umask=st.integers(0, 0o777),
)


Ends = tuple[socket.socket, socket.socket]


@pytest.fixture
def ends() -> Iterator[Ends]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


@given(request=_REQUESTS)
def test_a_request_arrives_as_it_was_sent(request: DriverRequest) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        send(ours, request.to_plain())
        received = receive(theirs)

    assert DriverRequest.from_plain(received[0]) == request


def test_descriptors_arrive_with_their_message_and_are_given_to_no_child(ends: Ends) -> None:
    ours, theirs = ends
    read, written = os.pipe()
    send(ours, {"n": 1}, [read, written, written])

    received = receive(theirs, 3)

    assert received is not None
    message, found = received
    os.write(found[1], b"x")
    assert message == {"n": 1}
    assert os.read(read, 1) == b"x"
    assert len({read, written, *found}) == 5
    assert not any(os.get_inheritable(each) for each in found)
    for each in (read, written, *found):
        os.close(each)


@pytest.mark.parametrize(
    "said",
    [b"\0\0\0\2[]", b"\0\0\0\1{", b"\xff\xff\xff\xff", b"\0\0\0\1\xff"],
    ids=["not an object", "cut", "long", "odd"],
)
def test_what_is_no_message_is_refused(ends: Ends, said: bytes) -> None:
    ours, theirs = ends
    ours.sendall(said)

    with pytest.raises(ValueError):
        receive(theirs)


@pytest.mark.parametrize("said", [b"\0", b"\0\0\0\5", b"\0\0\0\5{"])
def test_a_connection_that_ends_within_a_message_is_told(ends: Ends, said: bytes) -> None:
    ours, theirs = ends
    ours.sendall(said)
    ours.close()

    with pytest.raises(ConnectionResetError):
        receive(theirs)


def test_a_connection_that_ends_after_a_message_has_no_more(ends: Ends) -> None:
    ours, theirs = ends
    assert is_ours(ours)
    send(ours, {})
    ours.close()

    assert receive(theirs) == ({}, [])
    assert receive(theirs) is None


def test_descriptors_that_are_missing_are_told(ends: Ends) -> None:
    ours, theirs = ends
    send(ours, {})

    with pytest.raises(ValueError, match="0 descriptors"):
        receive(theirs, 3)


def test_the_address_leads_to_the_place_that_was_named_unless_others_may_enter_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "private"
    folder.mkdir(mode=0o700)

    with socket_address(folder / "s") as address, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)

    assert stat.S_ISSOCK((folder / "s").stat().st_mode)
    for mode in (0o701, 0o710, 0o755, 0o770):
        folder.chmod(mode)
        with pytest.raises(ConfigurationError, match="is accessible to other users"), socket_address(folder / "s"):
            pass


def test_the_code_is_what_the_files_say_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def project(text: str, name: str = "a.py") -> str:
        folder = tmp_path / f"{text}{name}"
        (folder / "mirror_lib" / "inner").mkdir(parents=True)
        (folder / "mirror_lib" / "inner" / name).write_text(text)
        (folder / "mirror_lib" / "notes.txt").write_text(str(folder))
        monkeypatch.setattr("mirror_lib.__file__", str(folder / "mirror_lib" / "__init__.py"))
        return code_stamp()

    first = project("x")
    assert project("y") != first
    assert project("x", "b.py") != first
    (tmp_path / "xa.py" / "mirror_lib" / "notes.txt").write_text("no code")
    monkeypatch.setattr("mirror_lib.__file__", str(tmp_path / "xa.py" / "mirror_lib" / "__init__.py"))
    assert code_stamp() == first


def test_a_python_is_its_program_and_its_folder(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        for name in ("python", "python3"):
            (tmp_path / folder / name).symlink_to("/bin/sh")

    assert python_stamp(str(tmp_path / "one" / "python")) == python_stamp(str(tmp_path / "one" / "python3"))
    assert python_stamp(str(tmp_path / "one" / "python")) != python_stamp(str(tmp_path / "two" / "python"))


def test_the_mask_of_new_files_is_found_out(tmp_path: Path) -> None:
    before = os.umask(0o037)
    try:
        assert current_umask() == 0o037
        assert os.umask(0o037) == 0o037
    finally:
        os.umask(before)
