"""`java.text.SimpleDateFormat` in UTC with English names, for formatting and for lenient parsing.

Java takes names of months and days from the JVM's locale; here they are always English.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby

from mirror_lib.features.transforms.smt.values.data import DataError

_LETTERS = "GyMdkHmsSEDFwWahKzZYuXL"
_SUPPORTED = "yMdDHhkKmsSEuazZX"
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MILLISECONDS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000}
#: Letters that change within a day, the finest first, and how long each stays the same.
_RESOLUTIONS = ((frozenset("S"), 1), (frozenset("s"), 1000), (frozenset("m"), 60_000), (frozenset("HhkKa"), 3_600_000))
#: 15 October 1582: for Java, earlier dates belong to the Julian calendar.
_CUTOVER = -12_219_292_800_000
_OFFSET = re.compile(r"(?:GMT)?([+-])([0-9]{1,2}):?([0-9]{2})?")
_NUMBER = re.compile(r"-?[0-9]+")


@dataclass(frozen=True, slots=True)
class _Part:
    """A sequence of one pattern letter, or literal text (`letter` is empty)."""

    letter: str
    count: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class DateFormat:
    """A parsed pattern; see `compile`."""

    pattern: str
    parts: tuple[_Part, ...]

    @classmethod
    def compile(cls, pattern: str) -> DateFormat:
        """Parse a pattern.

        Raises:
            ValueError: Java rejects it, or a letter has no counterpart here; the message is one clause.
        """
        return cls(pattern, tuple(_read(pattern)))

    def format(self, milliseconds: int) -> str:
        """Return a moment as text.

        Raises:
            DataError: it is before 15 October 1582.
        """
        if milliseconds < _CUTOVER:
            raise DataError("the date is before 15 October 1582, when Java changes to another calendar")
        moment = _Moment.of(milliseconds)
        return "".join(part.text if not part.letter else moment.field(part) for part in self.parts)

    @property
    def resolution(self) -> int:
        """The interval in milliseconds within which all moments have the same text, counted from 1970."""
        letters = {part.letter for part in self.parts}
        return next((width for finer, width in _RESOLUTIONS if letters & finer), _MILLISECONDS["d"])

    def parse(self, text: str) -> int:
        """Return the moment at the start of a text, in milliseconds; the rest is ignored, as in Java.

        Raises:
            DataError: the text does not fit the pattern, or such texts cannot be parsed here.
        """
        if (why := self.why_not_parsed()) is not None:
            raise DataError(f"strings of the format {self.pattern} cannot be parsed here: {why}")
        reading = _Reading(text)
        for index, part in enumerate(self.parts):
            if not part.letter:
                reading.literal(part.text)
            else:
                following = self.parts[index + 1] if index + 1 < len(self.parts) else None
                if not reading.field(part, exact=_is_number(following)):
                    reading.failed = True
            if reading.failed:
                raise DataError(f"Could not parse timestamp: value ({text}) does not match pattern ({self.pattern})")
        return reading.moment()

    def why_not_parsed(self) -> str | None:
        """Return why texts of this pattern cannot be parsed here, None if they can."""
        letters = {part.letter for part in self.parts if part.letter}
        if any(part.letter == "y" and part.count == 2 for part in self.parts):
            return "a two-digit year is ambiguous over time; write yyyy"
        if letters & {"E", "u", "D"} and "d" not in letters:
            return "days of the week or of the year cannot be parsed; write the day of the month"
        return None


def _read(pattern: str) -> list[_Part]:
    parts: list[_Part] = []
    # Quoted text becomes a pair with an empty first member.
    pieces: list[tuple[str, str]] = []
    position, quoted = 0, False
    while position < len(pattern):
        char = pattern[position]
        if pattern.startswith("''", position):
            pieces.append(("", "'"))
            position += 2
            continue
        if char == "'":
            quoted = not quoted
        else:
            is_letter = not quoted and char.isascii() and char.isalpha()
            pieces.append((char if is_letter else "", char))
        position += 1
    if quoted:
        raise ValueError("a quote is not closed")
    for letter, group in groupby(pieces, key=lambda piece: piece[0]):
        run = "".join(char for _, char in group)
        if letter:
            _check(letter, len(run))
        parts.append(_Part(letter, len(run), run))
    return parts


def _check(letter: str, count: int) -> None:
    if letter not in _LETTERS:
        raise ValueError(f"{letter} is not a letter of SimpleDateFormat; put text in single quotes")
    if letter not in _SUPPORTED:
        raise ValueError(f"the letter {letter} is not supported; supported: {' '.join(_SUPPORTED)}")
    if letter == "X" and count > 3:
        raise ValueError("X may be repeated at most three times")


def _is_number(part: _Part | None) -> bool:
    """Return `SimpleDateFormat.shouldObeyCount`: before such a field, digits are limited to the number of its
    letters.
    """
    return part is not None and (part.letter in tuple("ydDHhkKmsSu") or (part.letter == "M" and part.count <= 2))


@dataclass(frozen=True, slots=True)
class _Moment:
    """A moment as the fields of a calendar."""

    year: int
    month: int
    day: int
    weekday: int
    day_of_year: int
    hour: int
    minute: int
    second: int
    millisecond: int

    @classmethod
    def of(cls, milliseconds: int) -> _Moment:
        days, rest = divmod(milliseconds, _MILLISECONDS["d"])
        year, month, day = _civil(days)
        hour, rest = divmod(rest, _MILLISECONDS["h"])
        minute, rest = divmod(rest, _MILLISECONDS["m"])
        second, millisecond = divmod(rest, _MILLISECONDS["s"])
        of_year = days - _days(year, 1, 1) + 1
        return cls(year, month, day, (days + 3) % 7, of_year, hour, minute, second, millisecond)

    def field(self, part: _Part) -> str:
        """Return one field as text."""
        letter, count = part.letter, part.count
        if letter == "y":
            return f"{self.year % 100:02}" if count == 2 else f"{self.year:0{count}}"
        if letter == "M" and count >= 3:
            name = _MONTHS[self.month - 1]
            return name if count >= 4 else name[:3]
        if letter == "E":
            return _DAYS[self.weekday] if count >= 4 else _DAYS[self.weekday][:3]
        fixed = {
            "a": "AM" if self.hour < 12 else "PM",
            "z": "Coordinated Universal Time" if count >= 4 else "UTC",
            "Z": "+0000",
            "X": "Z",
        }
        return fixed[letter] if letter in fixed else f"{self._number(letter):0{count}}"

    def _number(self, letter: str) -> int:
        return {
            "M": self.month,
            "d": self.day,
            "D": self.day_of_year,
            "H": self.hour,
            "k": self.hour or 24,
            "K": self.hour % 12,
            "h": self.hour % 12 or 12,
            "m": self.minute,
            "s": self.second,
            "S": self.millisecond,
            "u": self.weekday + 1,
        }[letter]


class _Reading:
    """One lenient parse: a 13th month is January of the next year."""

    def __init__(self, text: str) -> None:
        self.failed = False
        self._text = text
        self._at = 0
        self._found: dict[str, int] = {}
        self._zone_milliseconds = 0

    def literal(self, text: str) -> None:
        if self._text.startswith(text, self._at):
            self._at += len(text)
        else:
            self.failed = True

    def field(self, part: _Part, *, exact: bool) -> bool:
        """Read one field; return False if it is missing."""
        end = self._at + part.count if exact else len(self._text)
        while self._text[self._at : self._at + 1] in (" ", "\t"):
            self._at += 1
        if part.letter == "M" and part.count >= 3:
            return self._name("M", _MONTHS, 1)
        if part.letter == "E":
            return self._name("E", _DAYS, 0)
        if part.letter == "a":
            return self._name("a", ("AM", "PM"), 0)
        if part.letter in "zZX":
            return self._zone(part)
        return self._number(part, end)

    def moment(self) -> int:
        found = self._found
        year, month = found.get("y", 1970), found.get("M", 1)
        extra_years, month_index = divmod(month - 1, 12)
        days = _days(year + extra_years, month_index + 1, 1) + found.get("d", 1) - 1
        milliseconds = (
            days * _MILLISECONDS["d"]
            + self._hour() * _MILLISECONDS["h"]
            + found.get("m", 0) * _MILLISECONDS["m"]
            + found.get("s", 0) * _MILLISECONDS["s"]
            + found.get("S", 0)
            - self._zone_milliseconds
        )
        if milliseconds < _CUTOVER:
            raise DataError("the date is before 15 October 1582, when Java changes to another calendar")
        return milliseconds

    def _hour(self) -> int:
        found = self._found
        if "H" in found or "k" in found:
            hour = found["H"] if "H" in found else found["k"]
            return 0 if "H" not in found and hour == 24 else hour
        hour = found.get("K", found.get("h", 0))
        if "K" not in found and hour == 12:
            hour = 0
        return hour + 12 * found.get("a", 0)

    def _number(self, part: _Part, end: int) -> bool:
        found = _NUMBER.match(self._text, self._at, end) if end <= len(self._text) else None
        if found is None:
            return False
        digits = found[0]
        if part.letter == "y" and part.count <= 2 and re.fullmatch("[0-9]{2}", digits):
            raise DataError("a two-digit year is ambiguous over time")
        if len(digits) > 9:
            raise DataError(f"a number in the date has too many digits: {digits[:20]}")
        self._found[part.letter] = int(digits)
        self._at = found.end()
        return True

    def _name(self, letter: str, names: tuple[str, ...], first: int) -> bool:
        rest = self._text[self._at :].lower()
        for index, name in enumerate(names):
            for form in (name, name[:3]):
                if rest.startswith(form.lower()):
                    self._found[letter] = index + first
                    self._at += len(form)
                    return True
        return False

    def _zone(self, part: _Part) -> bool:
        rest = self._text[self._at :]
        for name in ("Z",) if part.letter == "X" else ("UTC", "Coordinated Universal Time"):
            if rest.startswith(name):
                self._at += len(name)
                return True
        found = _OFFSET.match(rest)
        if found is not None and (found[3] is not None or (part.letter == "X" and part.count == 1)):
            hours, minutes = int(found[2]), int(found[3] or 0)
            sign = 1 if found[1] == "+" else -1
            self._zone_milliseconds = sign * (hours * _MILLISECONDS["h"] + minutes * _MILLISECONDS["m"])
            self._at += found.end()
            return True
        if part.letter != "X" and rest.startswith("GMT"):
            self._at += 3
            return True
        return False


def _days(year: int, month: int, day: int) -> int:
    """Return the days since 1970 of a date of the Gregorian calendar, for any year."""
    shifted = year - (month <= 2)
    era, year_of_era = divmod(shifted, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


def _civil(days: int) -> tuple[int, int, int]:
    """Return year, month and day; the inverse of `_days`."""
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted_month + 2) // 5 + 1
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    return year_of_era + era * 400 + (month <= 2), month, day
