"""Files of metrics that node_exporter reads (its textfile collector)."""

from __future__ import annotations

from pathlib import Path

from mirror_lib.errors import MirrorError
from mirror_lib.private_files import draft_of

#: Readable by other users: node_exporter runs as its own user.
_READABLE = 0o644


def write_metrics_file(path: Path, text: bytes) -> None:
    """Replace a file of metrics at once: node_exporter never sees a part of it.

    Raises:
        MirrorError: the file cannot be written.
    """
    try:
        with draft_of(path, _READABLE) as draft:
            draft.write_bytes(text)
    except OSError as error:
        raise MirrorError(
            f"cannot write the metrics to {path}: {error.strerror}.",
            action="Use a file in an existing, writable folder, such as the folder of node_exporter's "
            "--collector.textfile.directory.",
        ) from error
