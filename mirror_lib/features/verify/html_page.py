"""One self-contained HTML page for a report; light or dark as the reader's system is set."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from mirror_lib.printable import LINES, printable

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --line: #d0d7de; --soft: #f6f8fa;
  --equal: #116329; --different: #a40e26; --unverifiable: #7d4e00; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --paper: #0d1117; --line: #30363d; --soft: #161b22;
    --equal: #56d364; --different: #ff7b72; --unverifiable: #e3b341; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 76rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.result { font-weight: 600; padding: .6rem .9rem; border-left: 4px solid; background: var(--soft); }
.equal { color: var(--equal); } .different, .wrong { color: var(--different); }
.unverifiable { color: var(--unverifiable); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
th { background: var(--soft); white-space: nowrap; } td.number, th.number { text-align: right; }
code { font: 13px ui-monospace, monospace; word-break: break-all; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; }
dt { font-weight: 600; } dd { margin: 0; }
"""
#: Headings that are not the name of their column.
_HEADINGS = {"what": "difference"}


def page(title: str, kind: str, sentence: str, facts: Iterable[tuple[str, str]], sections: Iterable[str]) -> str:
    """The page.

    Args:
        kind: of the result: equal, different or unverifiable.
        sentence: the result.
        facts: names and texts.
        sections: HTML.
    """
    parts = [
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>",
        f"<h1>{escape(title)}</h1>",
        f'<p class="result {kind}">{escape(sentence)}</p>',
        "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts) + "</dl>",
        *sections,
        "</body>\n</html>\n",
    ]
    return "\n".join(parts)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, verdict_at: int | None = None) -> str:
    """A table; "None." without rows.

    Args:
        verdict_at: the column with a verdict, which has its colour.
    """
    body = "".join(_row(row, verdict_at) for row in rows)
    if not body:
        return "<p>None.</p>"
    head = "".join(f"<th>{escape(_HEADINGS.get(column, column))}</th>" for column in columns)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _row(row: Sequence[object], verdict_at: int | None) -> str:
    return f"<tr>{''.join(_cell(value, is_verdict=place == verdict_at) for place, value in enumerate(row))}</tr>\n"


def _cell(value: object, *, is_verdict: bool) -> str:
    if value is None:
        return "<td></td>"
    if isinstance(value, int | float):
        return f'<td class="number">{value:,}</td>'
    text = escape(printable(str(value), LINES))
    return f'<td class="{text}">{text}</td>' if is_verdict else f"<td>{text}</td>"
