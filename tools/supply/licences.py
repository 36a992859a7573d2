"""The licence of each locked package as an SPDX expression, and whether the project may depend on it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from email.message import Message
from functools import cache
from importlib.metadata import distributions
from typing import Any, cast

from license_expression import ExpressionError, get_spdx_licensing

from tools.supply.lockfile import LockedPackage

#: Licences of packages that this project, under Apache-2.0, may be installed with. LGPL packages are used unchanged, as
#: libraries that users may replace.
ALLOWED = frozenset(
    {
        *("0BSD", "Apache-2.0", "Artistic-1.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "CNRI-Python", "ISC", "MIT"),
        *("MIT-0", "MPL-2.0", "PSF-2.0", "Unlicense", "Zlib"),
        *("LGPL-2.1-or-later", "LGPL-3.0-only"),
    }
)
#: Packages whose metadata have only a text or a family of licences, or that are not installed here: as in their licence
#: files. A new version with an expression needs no line.
DECLARED: Mapping[str, str] = {
    "colorama": "BSD-3-Clause",
    "itsdangerous": "BSD-3-Clause",
    "jinja2": "BSD-3-Clause",
    "lz4": "BSD-3-Clause",
    "nodeenv": "BSD-3-Clause",
    "pandas": "BSD-3-Clause",
    "pathlib-abc": "PSF-2.0",
    "py4j": "BSD-3-Clause",
    "python-daemon": "Apache-2.0",
    "python-snappy": "BSD-3-Clause",
    "pyasn1-modules": "BSD-2-Clause",
    # The BSD licence is for all of it.
    "python-dateutil": "Apache-2.0 OR BSD-3-Clause",
    "pyyaml-ft": "MIT",
    "shiv": "BSD-2-Clause",
    "sqlparse": "BSD-3-Clause",
    "text-unidecode": "Artistic-1.0 OR GPL-2.0-or-later",
}
#: Values of the field `License`, or classifiers, that mean one licence for certain.
_WORDS: Mapping[str, str] = {
    "apache 2": "Apache-2.0",
    "apache 2.0": "Apache-2.0",
    "apache license": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "bsd 2-clause license": "BSD-2-Clause",
    "bsd 3-clause license": "BSD-3-Clause",
    "3-clause bsd license": "BSD-3-Clause",
    "isc license": "ISC",
    "isc license (iscl)": "ISC",
    "mit license": "MIT",
    "mit -or- apache license 2.0": "MIT OR Apache-2.0",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "psfl": "PSF-2.0",
    "python software foundation license": "PSF-2.0",
    "the unlicense (unlicense)": "Unlicense",
    "gnu lesser general public license v2 or later (lgplv2+)": "LGPL-2.1-or-later",
}
_CLASSIFIER = "License :: "


@dataclass(frozen=True, slots=True)
class Licensed:
    """A package and its licence; None if it is not certain."""

    package: LockedPackage
    expression: str | None

    @property
    def allowed(self) -> bool:
        """True if the project may depend on it: of alternatives one must be allowed, of several parts all."""
        return self.expression is not None and is_allowed(self.expression)


def licences(packages: Iterable[LockedPackage]) -> tuple[Licensed, ...]:
    """Return the licence of each package: from its installed metadata, else as declared here."""
    installed = _installed()
    return tuple(
        Licensed(each, expression_of(installed.get(_normal(each.name))) or DECLARED.get(_normal(each.name)))
        for each in packages
    )


def expression_of(metadata: Message | None) -> str | None:
    """Return a package's own licence as an SPDX expression; None if it is not certain."""
    if metadata is None:
        return None
    expression = metadata.get("License-Expression")
    if expression:
        return _valid(expression)
    short = (metadata.get("License") or "").strip()
    found = _valid(_WORDS.get(short.lower(), short)) if len(short) < 60 else None
    if found is not None:
        return found
    classifiers = [each for each in metadata.get_all("Classifier") or () if each.startswith(_CLASSIFIER)]
    named = {_WORDS.get(each.rpartition(" :: ")[2].lower()) for each in classifiers}
    named.discard(None)
    # If there are several, it is unknown whether they are alternatives.
    return next(iter(named)) if len(classifiers) == len(named) == 1 else None


def is_allowed(expression: str) -> bool:
    """Return True if an SPDX expression can be satisfied with allowed licences alone."""
    parsed = _licensing().parse(expression)
    names = {str(key): _licensing().TRUE if str(key) in ALLOWED else _licensing().FALSE for key in parsed.symbols}
    return bool(parsed.subs({symbol: names[str(symbol)] for symbol in parsed.symbols}).simplify() == _licensing().TRUE)


def _valid(text: str) -> str | None:
    try:
        parsed = _licensing().parse(text, validate=True, strict=True)
    except ExpressionError:
        return None
    return None if parsed is None else str(parsed)


@cache
def _installed() -> Mapping[str, Message]:
    # The protocol of importlib has no access to optional fields; the object is a Message.
    return {_normal(each.metadata["Name"]): cast("Message", each.metadata) for each in distributions()}


@cache
def _licensing() -> Any:
    return get_spdx_licensing()


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
