"""Decisions that an import cannot make, and the answers given to the command. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mirror_lib.errors import ConfigurationError

#: The meaning of an answer with any text.
ANY_TEXT = "..."
#: A question about a fact, so that it may be answered in advance.
KAFKA_VERSION = "kafka-version"


@dataclass(frozen=True, slots=True)
class Question:
    """One decision.

    Attributes:
        id: the part before `=` in `--answer`.
        text: what is ambiguous, and why.
        choices: possible answers and the meaning of each; `ANY_TEXT` accepts any text.
    """

    id: str
    text: str
    choices: tuple[tuple[str, str], ...]

    def allows(self, answer: str) -> bool:
        """Return True if this is a possible answer."""
        return any(choice == answer or (choice == ANY_TEXT and answer) for choice, _ in self.choices)

    def lines(self) -> tuple[str, ...]:
        """Return the question and the option for each answer, for display."""
        options = (f"--answer {_quote(f'{self.id}={choice}')}: {meaning}" for choice, meaning in self.choices)
        return (f"{self.id}: {self.text}", *options)


@dataclass(slots=True)
class Answers:
    """The answers of a command, and the questions that were asked so far."""

    given: Mapping[str, str]
    open: dict[str, Question] = field(default_factory=dict)
    _used: set[str] = field(default_factory=set)

    @classmethod
    def parse(cls, texts: Iterable[str]) -> Answers:
        """Parse `ID=ANSWER`.

        Raises:
            ConfigurationError: one has another form, or two answer the same question.
        """
        given: dict[str, str] = {}
        for text in texts:
            name, equals, answer = text.partition("=")
            if not equals or not name:
                raise ConfigurationError(f"--answer {text!r} has no =.", action="Write --answer QUESTION=ANSWER.")
            if given.get(name, answer) != answer:
                raise ConfigurationError(f"--answer has {name} twice.", action="Pass it once.")
            given[name] = answer
        return cls(given)

    def ask(self, question: Question) -> str | None:
        """Return the answer; None while the question is open.

        Raises:
            ConfigurationError: the answer is not one of the choices.
        """
        answer = self.given.get(question.id)
        if answer is None:
            self.open[question.id] = question
            return None
        self._used.add(question.id)
        if not question.allows(answer):
            choices = ", ".join(choice for choice, _ in question.choices)
            raise ConfigurationError(
                f"--answer {question.id}={answer} is not an answer to that question.", action=f"Use one of: {choices}."
            )
        return answer

    def check_used(self) -> None:
        """Reject answers to questions that were not asked.

        Raises:
            ConfigurationError: there is such an answer.
        """
        for name in self.given:
            if name not in self._used and name != KAFKA_VERSION:
                ids = ", ".join((*self.open, *sorted(self._used))) or "none"
                raise ConfigurationError(
                    f"--answer {name}: no such question.", action=f"Questions of this import: {ids}."
                )


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
