"""What a line allows to the copies of a bench over a distance."""

from __future__ import annotations

import pytest

from tools.bench.distance.model import Allowed, allowed
from tools.testbed.wan_direction import LineQuality

FAR = LineQuality(0.150, loss=0.01, window_bytes=6_000_000)


def test_a_line_allows_the_least_of_window_loss_and_width() -> None:
    # 6 MB / 0.15 s = 40 MB/s.
    windowed = allowed(LineQuality(0.150, window_bytes=6_000_000), 8)
    assert windowed == Allowed(8, window=8 * 40e6, loss=None, width=None)
    assert windowed.most == windowed.window

    # Mathis: 1.22 * 1460 bytes / (0.15 s * sqrt(0.01)) = 118,747 bytes a second.
    lossy = allowed(FAR, 8)
    assert lossy.loss == pytest.approx(8 * 118_747, rel=1e-5)
    assert lossy.most == lossy.loss

    # All connections share the width.
    wide = allowed(LineQuality(0.150, bytes_per_second=125e6, window_bytes=6_000_000), 8)
    assert (wide.width, wide.most) == (125e6, 125e6)

    assert allowed(LineQuality(0.0, window_bytes=6_000_000), 8).most is None
    assert allowed(LineQuality(0.150), 8).most is None
