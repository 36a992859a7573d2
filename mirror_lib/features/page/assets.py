"""The page's own files: they come with the package, so it works without internet access."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import HTMLResponse

router = APIRouter()

#: Browsers reject modules with another type; the machine's own mapping of suffixes may differ.
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html"}


@cache
def _assets() -> dict[str, tuple[bytes, str, str]]:
    """Return name -> content, type and tag; other names are not found."""
    found = {}
    for entry in (files("mirror_lib.features.page") / "static").iterdir():
        suffix = "." + entry.name.rpartition(".")[2]
        if entry.is_file() and suffix in _TYPES:
            content = entry.read_bytes()
            found[entry.name] = (content, _TYPES[suffix], f'"{hashlib.sha256(content).hexdigest()[:32]}"')
    return found


@router.get("/", response_class=HTMLResponse)
async def index() -> Response:
    """The page."""
    return HTMLResponse(_assets()["index.html"][0])


@router.get("/static/{name}", response_class=Response)
async def asset(request: Request, name: str) -> Response:
    """One of the page's files."""
    found = _assets().get(name)
    if found is None:
        raise HTTPException(404, "File not found.")
    content, kind, tag = found
    # Revalidated each time, so that an upgrade is visible at once.
    headers = {"Cache-Control": "private, no-cache", "ETag": tag}
    if request.headers.get("If-None-Match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=kind, headers=headers)
