"""A stored error holds neither the frames in which it was raised nor those of its causes."""

from __future__ import annotations

from mirror_lib.cluster.raw.backoff import without_frames


def test_an_error_and_all_its_causes_lose_their_frames() -> None:
    try:
        try:
            try:
                raise KeyError("first")
            except KeyError as error:
                raise ValueError("in its place") from error
        except ValueError:
            raise OSError("while it was handled")  # noqa: B904
    except OSError as error:
        stored: BaseException = error

    without_frames(stored)

    chain = [stored, stored.__context__, stored.__context__ and stored.__context__.__cause__]
    assert [type(each) for each in chain] == [OSError, ValueError, KeyError]
    assert [each for each in chain if each is None or each.__traceback__ is not None] == []
