"""Input that is made to take long: the time of a case (`child.SLOWEST_SECONDS`) is the oracle."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from random import Random

from mirror_lib.config import loader
from mirror_lib.config.secrets.masking import masked_text
from mirror_lib.config.secrets.providers import Resolver
from mirror_lib.errors import MirrorError
from mirror_lib.features.transforms.schemas.imports import read_imports
from mirror_lib.features.transforms.schemas.model import Schema, SchemaReference, SchemaType
from mirror_lib.outside_limits import SCHEMA_IMPORTS
from mirror_lib.printable import LINES, printable
from mirror_lib.topology.java_regex import compile_java, compile_list
from tools.fuzz.model import Target, Wrong

_WORDS = (
    *("http://", "?pass", "?", "&key=", "=", "#", ";", "@", ":", "//", "a", "A1", " ", "\t", "'", '"', "\\"),
    *("${", "${a:", "}", ":", "LoginModule required ", "{{", "}}", "<", ">", "->", ".", ",", "-----BEGIN A-----"),
)
_CHARACTERS = 10_000


class LongTexts(Target):
    """Values of a properties file that repeat a few words: code that shows or checks them scans them once."""

    name = "long-texts"
    what = "long texts of few words, as values of a file"
    errors = (MirrorError,)
    weight = 0.1

    def make(self, random: Random) -> bytes:
        """Return some words, repeated in their order, between others."""
        words = random.choices(_WORDS, k=random.randrange(1, 5))
        before, behind = (random.choice(("", *_WORDS)) for _ in range(2))
        repeated = "".join(words)
        return f"{before}{repeated * (_CHARACTERS // len(repeated))}{behind}".encode()

    def run(self, data: bytes) -> str:
        """Mask, make printable, resolve and check it."""
        text = data.decode()
        masked_text(text)
        printable(text, LINES)
        Resolver({}).resolve(text)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "mirror.properties")
            lines = (f"clusters = A, B\nA.bootstrap.servers = {text}", f"A->B.topics = {text}", f"{text} = 1")
            file.write_text("\n".join(lines), encoding="utf-8")
            return f"{len(loader.check(file)) > 0}"


_ATOMS = ("a", "b", ".", r"\w", "[.]", "[a-c]", r"\.", "-", "aa", "_?", r"[\w-]", "$", "^", r"\b")
_REPEATS = ("", "", "*", "+", "?", "{2}", "{1,20}", "*?", "+?", "{30}")


def _expression(random: Random, depth: int) -> str:
    parts = []
    for _ in range(random.randrange(1, 4)):
        part = random.choice(_ATOMS)
        if depth and random.random() < 0.7:
            choices = (_expression(random, depth - 1) for _ in range(random.randrange(1, 4)))
            part = f"({random.choice(('', '?:', '?=', '?i:'))}{'|'.join(choices)})"
        parts.append(part + random.choice(_REPEATS))
    return "".join(parts)


class Expressions(Target):
    """Java regexes of files and forms, with names of topics."""

    name = "slow-expressions"
    what = "regular expressions that try many ways to match a name"
    errors = (MirrorError, ValueError)
    weight = 0.1

    def make(self, random: Random) -> bytes:
        """Return an expression and a name as JSON."""
        unit = random.choice(("a", "b", ".", "-", "ab", "a.", "aab", "a_b-"))
        name = (unit * 249)[: random.randrange(20, 249)] + random.choice(("", "!", "Z"))
        return json.dumps([_expression(random, 4) + random.choice(("", "Z", "b")), name]).encode()

    def run(self, data: bytes) -> str:
        """Match it alone and in a list."""
        pattern, name = json.loads(data)
        alone = compile_java(pattern).fullmatch(name) is not None
        listed = compile_list(["orders", pattern])
        if listed is None or listed.fullmatch(name) != alone:
            raise Wrong("a list matches something else than its member")
        return str(alone)


class SchemaImports(Target):
    """Schemas of a registry that import one another."""

    name = "schema-imports"
    what = "references of schemas: long, wide, circular"
    errors = (MirrorError,)

    def make(self, random: Random) -> bytes:
        """Return the imports of each schema by number, as JSON."""
        count = random.choice((3, 30, 300, 3_000))
        step = random.choice((1, 1, 5, count))
        imports = [
            [(each + random.randrange(1, step + 1)) % random.choice((count, count, 10**9)) for _ in range(width)]
            for each, width in enumerate(random.choices((0, 1, 1, 2, 3, 50), k=count))
        ]
        return json.dumps(imports).encode()

    def run(self, data: bytes) -> str:
        """Read the imports of the first schema."""
        imports: list[list[int]] = json.loads(data)

        def schema(number: int) -> Schema:
            wanted = imports[number] if number < len(imports) else []
            return Schema(SchemaType.AVRO, "x", tuple(SchemaReference(f"s{each}", f"s{each}", 1) for each in wanted))

        found = read_imports(schema(0), lambda each: schema(int(each.subject[1:])), label="the schema")
        if len(found) > SCHEMA_IMPORTS:
            raise Wrong(f"{len(found)} schemas were read")
        seen: set[SchemaReference] = set()
        for reference, each in found.items():
            if not seen.issuperset(each.references):
                raise Wrong("a schema comes before its imports")
            seen.add(reference)
        return f"{len(found) > 0}"


TARGETS = (LongTexts(), Expressions(), SchemaImports())
