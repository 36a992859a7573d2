"""Find a Python function by its path without importing it, and inspect its source for non-determinism.

No user code is run here, not even the `__init__` of a package: modules are found by the import system's own finders and
read as text. Functions that are created at run time are reported as not visible.
"""

from __future__ import annotations

import ast
import difflib
import importlib.machinery
import keyword
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mirror_lib.features.transforms.model import FunctionKind, FunctionReference, Influence, NonDeterminism
from mirror_lib.features.transforms.sql.spark_functions import INFLUENCES

#: Modules of which every function is random, except for those with their own rule.
_RANDOM_MODULES = ("random", "secrets", "numpy.random", "faker")
_CLOCK_MODULES = ("time",)
_SPARK_MODULES = ("pyspark.sql.functions", "pyspark.sql.functions.builtin")
_NAMED: Mapping[str, Influence] = {
    "uuid.uuid1": Influence.RANDOM,
    "uuid.uuid4": Influence.RANDOM,
    "uuid.uuid6": Influence.RANDOM,
    "uuid.uuid7": Influence.RANDOM,
    "uuid.getnode": Influence.SURROUNDINGS,
    "os.urandom": Influence.RANDOM,
    "os.getrandom": Influence.RANDOM,
    "os.getpid": Influence.SURROUNDINGS,
    "os.environ": Influence.SURROUNDINGS,
    "os.getenv": Influence.SURROUNDINGS,
    "socket.gethostname": Influence.SURROUNDINGS,
    "datetime.datetime.now": Influence.CLOCK,
    "datetime.datetime.utcnow": Influence.CLOCK,
    "datetime.datetime.today": Influence.CLOCK,
    "datetime.date.today": Influence.CLOCK,
    "pandas.Timestamp.now": Influence.CLOCK,
    "pandas.Timestamp.utcnow": Influence.CLOCK,
    "pandas.Timestamp.today": Influence.CLOCK,
    #: For texts and bytes it differs in every process (PYTHONHASHSEED).
    "hash": Influence.SURROUNDINGS,
    "id": Influence.SURROUNDINGS,
}
_AT_IMPORT = "it is made when the module is imported"
#: Functions of the modules above that depend on their arguments alone.
_HARMLESS = frozenset({"time.strftime", "time.strptime", "time.mktime", "time.sleep", "secrets.compare_digest"})


@dataclass(frozen=True, slots=True)
class PythonFunction:
    """A function that exists.

    Attributes:
        reference: its path.
        file: of its module.
        line: of the definition, from 1; None if the source cannot be read.
        hints: what in its source, and in functions of the same module that it calls, may make results differ.
        doubts: sentences about what could not be inspected; empty if everything was.
    """

    reference: FunctionReference
    file: str | None = None
    line: int | None = None
    hints: tuple[NonDeterminism, ...] = ()
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NoFunction:
    """The function does not exist, or cannot be called as transforms are."""

    sentence: str
    advice: str


def parse_reference(path: str) -> FunctionReference | NoFunction:
    """`package.module.function` or, for batches of Arrow, `package.module:function`."""
    path = path.strip()
    module, colon, name = path.partition(":")
    kind = FunctionKind.ARROW if colon else FunctionKind.DATAFRAME
    if not colon:
        module, _, name = path.rpartition(".")
    names = (*module.split("."), name)
    if not all(each.isidentifier() and not keyword.iskeyword(each) for each in names):
        return NoFunction(
            f"{path!r} is not the path of a Python function",
            "write package.module.function for DataFrames, or package.module:function for Arrow batches",
        )
    return FunctionReference(module, name, kind)


def look_at_function(path: str) -> PythonFunction | NoFunction:
    """Find a function by its path and inspect its source; nothing is imported."""
    reference = parse_reference(path)
    if isinstance(reference, NoFunction):
        return reference
    spec = _find(reference.module)
    if isinstance(spec, NoFunction):
        return spec
    source = _source(spec)
    if source is None:
        return PythonFunction(reference, spec.origin, doubts=("its source code is not available",))
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError) as error:
        where = f", line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        return NoFunction(f"{spec.origin}{where} is not valid Python: {error}", "correct the module")
    return _Module(reference, spec, tree).look()


def _find(module: str) -> importlib.machinery.ModuleSpec | NoFunction:
    """Find a module by its path, one package after the other. `find_spec` would import its parent packages."""
    path: Sequence[str] | None = None
    found: importlib.machinery.ModuleSpec | None = None
    names = module.split(".")
    for index in range(len(names)):
        full = ".".join(names[: index + 1])
        if found is not None and path is None:
            return NoFunction(f"{found.name} is a module, not a package, so {full} does not exist", "correct the path")
        found = _find_one(full, path)
        if found is None:
            return NoFunction(
                f"there is no Python module {full} here",
                "correct the path, or install the package wherever the flow is planned and run",
            )
        # A namespace package returns its own type of list.
        path = None if found.submodule_search_locations is None else list(found.submodule_search_locations)
    if found is None or (found.loader is None and found.origin is None):
        return NoFunction(f"{module} is a package, not a module", "add the module before the function")
    return found


def _find_one(name: str, path: Sequence[str] | None) -> importlib.machinery.ModuleSpec | None:
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        try:
            spec = find(name, path) if find is not None else None
        except (ImportError, ValueError, AttributeError, OSError):
            continue
        if isinstance(spec, importlib.machinery.ModuleSpec):
            return spec
    return None


def _source(spec: importlib.machinery.ModuleSpec) -> str | None:
    read = getattr(spec.loader, "get_source", None)
    try:
        source = read(spec.name) if read is not None else None
    except (ImportError, OSError, UnicodeDecodeError, SyntaxError):
        return None
    return source if isinstance(source, str) else None


class _Module:
    """The source of one module."""

    def __init__(self, reference: FunctionReference, spec: importlib.machinery.ModuleSpec, tree: ast.Module) -> None:
        self._reference = reference
        self._file = spec.origin
        self._package = spec.parent or ""
        self._tree = tree
        self._functions = {each.name: each for each in tree.body if isinstance(each, ast.FunctionDef)}
        self._imports = dict(_imported_names(tree.body, self._package))

    def look(self) -> PythonFunction | NoFunction:
        """Return the function, or why there is none."""
        name = self._reference.name
        function = self._functions.get(name)
        if function is None:
            return self._other(name)
        wrong = self._wrong_signature(function)
        if wrong is not None:
            return wrong
        doubts = ("the function behind its decorators is unknown",) if function.decorator_list else ()
        hints = tuple(dict.fromkeys(self._hints(function)))
        return PythonFunction(self._reference, self._file, function.lineno, hints, doubts)

    def _other(self, name: str) -> PythonFunction | NoFunction:
        """Return what a name of the module refers to if it is not a plain function."""
        module = self._reference.module
        for statement in ast.walk(self._tree):
            if isinstance(statement, ast.AsyncFunctionDef) and statement.name == name:
                return NoFunction(f"{module}.{name} is a coroutine", "write a plain function")
            if isinstance(statement, ast.ClassDef) and statement.name == name:
                return NoFunction(f"{module}.{name} is a class", "use a function")
            if isinstance(statement, ast.FunctionDef) and statement.name == name:
                return PythonFunction(self._reference, self._file, statement.lineno, doubts=(_AT_IMPORT,))
        if name in self._imports:
            doubt = f"it is imported from {self._imports[name]}, which is not checked"
            return PythonFunction(self._reference, self._file, doubts=(doubt,))
        if name in _assigned_names(self._tree) or "__getattr__" in self._functions or _imports_all(self._tree):
            return PythonFunction(self._reference, self._file, doubts=(_AT_IMPORT,))
        guess = difflib.get_close_matches(name, sorted(self._functions), 1, 0.6)
        known = ", ".join(sorted(each for each in self._functions if not each.startswith("_"))) or "none"
        advice = f"did you mean {guess[0]}?" if guess else f"its functions are: {known}"
        return NoFunction(f"{module} has no function {name}", advice)

    def _wrong_signature(self, function: ast.FunctionDef) -> NoFunction | None:
        arguments = function.args
        positional = (*arguments.posonlyargs, *arguments.args)
        required = len(positional) - len(arguments.defaults)
        keywords = [
            each.arg for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if not default
        ]
        takes_one = required <= 1 and (positional or arguments.vararg is not None)
        given = "the DataFrame" if self._reference.kind is FunctionKind.DATAFRAME else "the record batch"
        if takes_one and not keywords:
            return None
        shown = f"{self._reference.module}.{function.name}"
        return NoFunction(
            f"{shown} (line {function.lineno}) cannot be called with one argument",
            f"define it with {given} as its only argument",
        )

    def _hints(self, function: ast.FunctionDef) -> Iterator[NonDeterminism]:
        """Yield hints in the function and in those of its module that it names."""
        seen: set[str] = set()
        waiting = [function.name]
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            body = self._functions[name]
            imports = self._imports | dict(_imported_names(ast.walk(body), self._package))
            for path in _paths(body, imports):
                if path in self._functions and path not in imports:
                    waiting.append(path)
                influence = _influence(path)
                if influence is not None and path not in self._functions:
                    yield NonDeterminism(path, influence)


def _imported_names(statements: Iterable[ast.AST], package: str) -> Iterator[tuple[str, str]]:
    """Yield the names that import statements bind, with the objects they refer to."""
    for statement in statements:
        if isinstance(statement, ast.Import):
            for each in statement.names:
                # `import a.b` binds a, and a.b is written in full.
                yield (each.asname, each.name) if each.asname else (each.name.split(".")[0],) * 2
        elif isinstance(statement, ast.ImportFrom):
            parents = package.split(".")
            above = ".".join(parents[: len(parents) - statement.level + 1]) if statement.level else ""
            source = ".".join(part for part in (above, statement.module or "") if part)
            for each in statement.names:
                if each.name != "*":
                    yield each.asname or each.name, f"{source}.{each.name}"


def _paths(function: ast.FunctionDef, imports: Mapping[str, str]) -> Iterator[str]:
    """Yield every name, and every dotted path that begins with an imported one, with imported names in full."""
    for node in ast.walk(function):
        if isinstance(node, (ast.Attribute, ast.Name)):
            parts: list[str] = []
            inner: ast.expr = node
            while isinstance(inner, ast.Attribute):
                parts.insert(0, inner.attr)
                inner = inner.value
            if isinstance(inner, ast.Name) and (inner.id in imports or not parts):
                yield ".".join((imports.get(inner.id, inner.id), *parts))


def _influence(path: str) -> Influence | None:
    """Return what an object of Python's standard library, numpy or PySpark depends on."""
    if path in _HARMLESS:
        return None
    if path in _NAMED:
        return _NAMED[path]
    module, _, name = path.rpartition(".")
    if module in _SPARK_MODULES:
        return INFLUENCES.get(name)
    if any(path.startswith(f"{each}.") for each in _RANDOM_MODULES):
        return Influence.RANDOM
    return Influence.CLOCK if module in _CLOCK_MODULES else None


def _assigned_names(tree: ast.Module) -> frozenset[str]:
    """Return the names that a module binds by assignments, also inside `if` and `try`."""
    return frozenset(
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )


def _imports_all(tree: ast.Module) -> bool:
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    return any(each.name == "*" for node in imports for each in node.names)
