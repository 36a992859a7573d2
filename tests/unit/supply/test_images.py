"""Pinning images; no registry is asked."""

from __future__ import annotations

import pytest

from tools.supply.images import Image, images, pinned

DIGEST, OTHER = f"sha256:{'0' * 64}", f"sha256:{'f' * 64}"


def test_a_digest_is_put_behind_the_tag_and_replaced_by_the_next() -> None:
    text = "services:\n  a:\n    image: postgres:17\n    image: batch-mirror:local\n  # image: postgres:17\n"

    once = pinned(text, {"postgres:17": DIGEST})

    assert once == text.replace("    image: postgres:17\n", f"    image: postgres:17@{DIGEST}\n", 1)
    assert images(once) == (Image("postgres:17", DIGEST),)
    assert pinned(once, {"postgres:17": OTHER}) == once.replace(DIGEST, OTHER)


def test_what_is_no_digest_is_written_nowhere() -> None:
    for digest in ("", "sha256:", "latest", f"{DIGEST}\n", f"{DIGEST} x", DIGEST[:-1]):
        with pytest.raises(ValueError, match="is no digest"):
            pinned("FROM python:3.12\n", {"python:3.12": digest})
