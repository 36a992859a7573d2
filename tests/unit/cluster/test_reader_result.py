"""What the reading half of a task leaves for the writing one, and what others on the machine can do about it."""

from __future__ import annotations

import json
import os
import pickle
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mirror_lib.errors import MirrorError
from mirror_lib.features.transforms.rows.reader_result import ReaderResult, new_secret
from tests.support.no_skips import NEEDS_ROOT

_OTHER_USER = 65_533
WORD = {"ends": [1, 2, 3]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where everybody may make files and nobody replaces those of others, as /tmp is."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    return shared


@pytest.fixture
def secret() -> str:
    return new_secret()


def as_other_user(what: Callable[[], object]) -> bool:
    """Carry something out as another user of the machine; returns whether it succeeded."""
    child = os.fork()
    if not child:
        try:
            os.setgroups([])
            os.setgid(_OTHER_USER)
            os.setuid(_OTHER_USER)
            what()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def place(folder: Path) -> Path:
    """The only folder of a hand-over."""
    (found,) = folder.iterdir()
    return found


def test_given_a_word_when_it_is_taken_then_it_is_the_last_one_and_nothing_is_left(folder: Path, secret: str) -> None:
    ReaderResult(secret, 3, 0, folder).leave({"first": 1})
    ReaderResult(secret, 3, 0, folder).leave(WORD)

    assert ReaderResult(secret, 3, 0, folder).look() == WORD
    assert ReaderResult(secret, 3, 0, folder).take() == WORD
    assert not list(folder.iterdir())


def test_given_no_word_when_it_is_taken_then_the_rows_ended_too_early(folder: Path, secret: str) -> None:
    assert ReaderResult(secret, 0, 0, folder).look() is None
    with pytest.raises(MirrorError, match="ended before the end of its source"):
        ReaderResult(secret, 0, 0, folder).take()


def test_given_a_word_of_another_attempt_or_job_when_one_is_looked_for_then_there_is_none(
    folder: Path, secret: str
) -> None:
    ReaderResult(secret, 0, 0, folder).leave(WORD)

    assert ReaderResult(secret, 0, 1, folder).look() is None
    assert ReaderResult(secret, 1, 0, folder).look() is None
    assert ReaderResult(new_secret(), 0, 0, folder).look() is None


def test_given_the_word_of_another_attempt_in_the_place_of_this_one_when_it_is_taken_then_it_does_not_count(
    folder: Path, secret: str
) -> None:
    ReaderResult(secret, 0, 0, folder).leave({"attempt": 0})
    failed = (place(folder) / "word").read_bytes()
    ReaderResult(secret, 0, 0, folder).take()
    ReaderResult(secret, 0, 1, folder).leave({"attempt": 1})
    (place(folder) / "word").write_bytes(failed)

    with pytest.raises(MirrorError, match="not written by the task"):
        ReaderResult(secret, 0, 1, folder).take()


def test_given_a_planted_word_when_it_is_taken_then_it_does_not_count(
    folder: Path, secret: str, subtests: pytest.Subtests
) -> None:
    for content in (b"", b"{}", pickle.dumps({}), b"\0" * 32 + b"{}", json.dumps(WORD).encode()):
        with subtests.test(content=content):
            ReaderResult(secret, 0, 0, folder).leave(WORD)
            (place(folder) / "word").write_bytes(content)

            for ask in (ReaderResult(secret, 0, 0, folder).look, ReaderResult(secret, 0, 0, folder).take):
                with pytest.raises(MirrorError, match="not written by the task"):
                    ask()


def test_given_a_hand_over_when_its_place_is_looked_at_then_it_is_private_and_its_name_tells_nothing(
    folder: Path, secret: str
) -> None:
    ReaderResult(secret, 5, 0, folder).leave(WORD)

    found = place(folder)
    assert stat.S_IMODE(found.stat().st_mode) == 0o700
    assert stat.S_IMODE((found / "word").stat().st_mode) == 0o600
    assert not any(secret[at : at + 8] in found.name for at in range(len(secret) - 8))


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o777])
def test_given_a_folder_that_others_may_enter_when_a_word_is_left_there_then_it_is_refused(
    folder: Path, secret: str, mode: int
) -> None:
    ReaderResult(secret, 0, 0, folder).leave(WORD)
    place(folder).chmod(mode)

    for ask in (lambda: ReaderResult(secret, 0, 0, folder).leave(WORD), ReaderResult(secret, 0, 0, folder).take):
        with pytest.raises(MirrorError, match="user only"):
            ask()


def test_given_a_link_in_the_place_of_the_folder_when_a_word_is_left_then_nothing_is_written_behind_it(
    folder: Path, secret: str, tmp_path: Path
) -> None:
    ReaderResult(secret, 0, 0, folder).leave(WORD)
    there, elsewhere = place(folder), tmp_path / "elsewhere"
    there.rename(elsewhere)
    there.symlink_to(elsewhere)
    (elsewhere / "word").unlink()

    with pytest.raises(MirrorError, match="user only"):
        ReaderResult(secret, 0, 0, folder).leave(WORD)
    assert not list(elsewhere.iterdir())


def test_given_a_link_in_the_place_of_the_word_when_it_is_taken_then_it_is_not_followed(
    folder: Path, secret: str, tmp_path: Path
) -> None:
    ReaderResult(secret, 0, 0, folder).leave(WORD)
    word, elsewhere = place(folder) / "word", tmp_path / "elsewhere"
    word.rename(elsewhere)
    word.symlink_to(elsewhere)

    with pytest.raises(MirrorError):
        ReaderResult(secret, 0, 0, folder).take()
    assert elsewhere.exists()


def test_given_folders_of_tasks_that_were_killed_yesterday_when_a_word_is_left_then_they_are_removed(
    folder: Path, secret: str
) -> None:
    ReaderResult(new_secret(), 0, 0, folder).leave(WORD)
    forgotten = place(folder)
    os.utime(forgotten, (time.time() - 90_000, time.time() - 90_000))

    ReaderResult(secret, 0, 0, folder).leave(WORD)

    assert place(folder) != forgotten


@pytest.mark.skipif(os.geteuid() != 0, reason=NEEDS_ROOT)
class TestAnotherUser:
    """Another user of the machine, who sees every name that there is."""

    @pytest.fixture(autouse=True)
    def reachable(self, folder: Path) -> None:
        for parent in folder.parents:
            if parent.is_relative_to("/tmp") and parent != Path("/tmp"):
                parent.chmod(0o755)

    def test_given_a_word_that_waits_when_another_user_attacks_then_it_stays_as_it_is(
        self, folder: Path, secret: str
    ) -> None:
        ReaderResult(secret, 0, 0, folder).leave(WORD)
        there = place(folder)

        assert as_other_user(lambda: list(folder.iterdir()))
        assert as_other_user(lambda: (folder / "mine").touch())
        for attack in (
            lambda: (there / "word").read_bytes(),
            lambda: (there / "word").write_bytes(b"{}"),
            lambda: (there / "planted").write_bytes(b"{}"),
            lambda: list(there.iterdir()),
            lambda: there.rename(folder / "away"),
            lambda: there.chmod(0o777),
        ):
            assert not as_other_user(attack)

        assert ReaderResult(secret, 0, 0, folder).take() == WORD

    @pytest.mark.parametrize("mode", [0o700, 0o777])
    def test_given_another_user_who_made_the_folder_first_when_the_halves_meet_there_then_they_refuse(
        self, folder: Path, secret: str, mode: int
    ) -> None:
        ReaderResult(secret, 0, 0, folder).leave(WORD)
        there = place(folder)
        written = (there / "word").read_bytes()
        ReaderResult(secret, 0, 0, folder).take()

        def plant() -> None:
            there.mkdir()
            (there / "word").write_bytes(written)
            (there / "word").chmod(0o666)
            there.chmod(mode)

        assert as_other_user(plant)

        for ask in (ReaderResult(secret, 0, 0, folder).take, lambda: ReaderResult(secret, 0, 0, folder).leave(WORD)):
            with pytest.raises(MirrorError, match="user only"):
                ask()

    def test_given_links_of_another_user_under_all_names_so_far_when_words_are_left_then_no_file_is_touched(
        self, folder: Path, tmp_path: Path
    ) -> None:
        precious = tmp_path / "precious"
        precious.mkdir()
        seen = []
        for number in range(5):
            result = ReaderResult(new_secret(), number, 0, folder)
            result.leave(WORD)
            seen.append(place(folder))
            result.take()
        for path in seen:
            assert as_other_user(lambda path=path: path.symlink_to(precious))

        secret = new_secret()
        for number in range(5):
            ReaderResult(secret, number, 0, folder).leave(WORD)
            assert ReaderResult(secret, number, 0, folder).take() == WORD

        assert not list(precious.iterdir())
