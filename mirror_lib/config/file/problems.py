"""Text of a file's problems, and the error that contains them all."""

from __future__ import annotations

from typing import Any

from mirror_lib.config.file.comments import COMMENT_TODO
from mirror_lib.config.file.stamps import FileStamp
from mirror_lib.config.model import Problem, Severity
from mirror_lib.errors import ConfigurationError


class InvalidConfigurationError(ConfigurationError):
    """A properties file cannot be used. `problems` are all its problems, warnings included."""

    reason = "invalid-configuration"

    def __init__(self, path: str, problems: tuple[Problem, ...], sources: tuple[FileStamp, ...] = ()) -> None:
        self.path = path
        self.problems = problems
        #: See `MirrorConfig`.
        self.sources = sources
        errors = [problem for problem in problems if problem.severity is Severity.ERROR]
        lines = "".join(f"\n  {describe(problem)}" for problem in errors)
        count = "1 error" if len(errors) == 1 else f"{len(errors)} errors"
        super().__init__(f"{path} has {count}:{lines}")

    @property
    def keys_in_error(self) -> frozenset[str]:
        """The keys of the lines with errors, as written; problems of the whole file have none."""
        return frozenset(each.key for each in self.problems if each.severity is Severity.ERROR and each.key)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path, self.problems, self.sources)

    def attributes(self) -> dict[str, Any]:
        return super().attributes() | {"problems": [problem.model_dump(mode="json") for problem in self.problems]}


def describe(problem: Problem) -> str:
    """Return one line: where, how severe, what, and what to do."""
    line = "" if problem.line is None else f"line {problem.line}: "
    todo = f"; {problem.suggestion}" if problem.suggestion else ""
    return f"{line}{problem.severity.value}: {problem.message}{todo}"


def in_order(problems: list[Problem]) -> tuple[Problem, ...]:
    """Return each problem once, in the order of the lines; those of the whole file come first.

    Of several problems about the comment behind a value, the most severe one says everything.
    """
    of_comments: dict[int | None, Problem] = {}
    for each in problems:
        if each.suggestion == COMMENT_TODO:
            before = of_comments.get(each.line)
            if before is None or before.severity is not Severity.ERROR:
                of_comments[each.line] = each
    kept = [each for each in problems if each.suggestion != COMMENT_TODO or of_comments[each.line] is each]
    return tuple(sorted(dict.fromkeys(kept), key=lambda problem: problem.line or 0))
