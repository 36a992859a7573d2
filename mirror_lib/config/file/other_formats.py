"""Files that are not properties files: reported by one message instead of an error for each line. Pure."""

from __future__ import annotations

import re

from mirror_lib.config.model import Problem
from mirror_lib.outside_json import parse_json
from mirror_lib.outside_limits import CONFIGURATION_BYTES

_IMPORT = "`mirror config import FILE` converts it to a properties file"
_MAGIC = (
    (b"\x1f\x8b", "compressed by gzip"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd"),
    (b"\xfe\xed\xfe\xed", "a Java key store"),
    (b"%PDF", "a PDF"),
)
_PEM = re.compile(rb"\s*-----BEGIN [A-Z ]+-----")
#: All lines may be indented, as in a copy from a web page.
_RESOURCE = re.compile(r"^[ \t]*kind:\s*[\"']?(KafkaMirrorMaker2|KafkaConnector|KafkaConnect)\b", re.MULTILINE)
_API_VERSION = re.compile(r"^[ \t]*apiVersion:\s", re.MULTILINE)
_YAML = re.compile(r"^(?:---\s*$|apiVersion:\s|kind:\s|services:\s*$|spec:\s*$|metadata:\s*$)", re.MULTILINE)
_TERRAFORM = re.compile(
    r"^\s*(?:resource|variable|module|locals|provider|terraform)\s*(?:\"[^\"]*\"\s*)*\{", re.MULTILINE
)
_TEMPLATE = re.compile(r"\{\{-?\s*(?:if|range|with|end|define|include|template)\b|\{%-?\s*(?:if|for|endif|endfor)\b")
_CLUSTERS = re.compile(r"^[ \t\f]*clusters[ \t\f]*[=: \t\f]", re.MULTILINE)
_CONNECTOR = re.compile(r"^[ \t\f]*connector\.class[ \t\f]*[=: \t\f]", re.MULTILINE)
_XML = re.compile(r"\s*<(?:\?xml|!DOCTYPE|[A-Za-z]+[ >])")


def foreign_format(data: bytes) -> Problem | None:
    """Return the one problem of a file of another format, None for a properties file or what may be one."""
    found = _binary(data) or _text(data.decode("iso-8859-1"))
    if found is None:
        return None
    what, todo = found
    return Problem.error(f"the file is {what}, not a properties file", suggestion=todo)


def _binary(data: bytes) -> tuple[str, str] | None:
    if len(data) > CONFIGURATION_BYTES:
        return f"larger than {CONFIGURATION_BYTES // 1024 // 1024} MiB", "use the properties file of MirrorMaker 2"
    for magic, what in _MAGIC:
        if data.startswith(magic):
            return what, "use the properties file of MirrorMaker 2, unpacked"
    if _PEM.match(data):
        return "a certificate or key (PEM)", "use the properties file of MirrorMaker 2"
    # UTF-16 and UTF-32 contain zero bytes too; `properties` reports them by their byte order marks.
    if b"\0" in data and not data.startswith((b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")):
        return "binary", "use the properties file of MirrorMaker 2; if the file is text, save it as ASCII or UTF-8"
    return None


def _text(text: str) -> tuple[str, str] | None:
    start = text.lstrip("\xef\xbb\xbf \t\r\n")[:1]
    if start in ("{", "[") and (found := _json(text)) is not None:
        return found
    resource = _RESOURCE.search(text)
    if resource is not None and _API_VERSION.search(text):
        return f"a Kubernetes resource (YAML, {resource[1]})", _IMPORT
    if _TEMPLATE.search(text):
        return (
            "a template (Helm, Jinja) that has not been rendered",
            "render it, for example with helm template, and use the output",
        )
    if _CLUSTERS.search(text):
        return None
    if _CONNECTOR.search(text):
        return "the configuration of a Connect connector", _IMPORT
    if _TERRAFORM.search(text):
        return "Terraform", "use the properties file that terraform apply writes"
    if _XML.match(text):
        return "XML", "use the properties file of MirrorMaker 2"
    if _YAML.search(text):
        return "YAML", "use the properties file of MirrorMaker 2; a KafkaMirrorMaker2 resource can be imported"
    return None


def _json(text: str) -> tuple[str, str] | None:
    try:
        value = parse_json(text.encode("iso-8859-1").decode("utf-8-sig", errors="replace"))
    except (ValueError, RecursionError):
        return ("malformed JSON", f"correct it; {_IMPORT}") if '"connector.class"' in text else None
    if '"connector.class"' in text:
        return "the configuration of a Connect connector (JSON)", _IMPORT
    if isinstance(value, dict) and "kind" in value:
        return f"a Kubernetes resource (JSON, {value['kind']})", _IMPORT
    return "JSON", "write each setting on its own line, as name = value"
