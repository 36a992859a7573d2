"""User input: forms of Airflow, definitions of cutovers, requests to the page."""

from __future__ import annotations

import asyncio
import json
import tempfile
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote, urlencode

import httpx

from mirror_lib.errors import MirrorError
from mirror_lib.features.cutover.model import CutoverDefinition
from tests.support.ledger.seeded import STORIES, seed, write_config
from tests.support.page.app import ACTION, Airflow, page_app
from tests.support.page.routes import routes_of
from tools.fuzz.model import Target, Wrong
from tools.fuzz.mutation import EXTREMES, WORDS, mutated

_TEXTS = tuple(word.decode("utf-8", "surrogateescape") for word in WORDS)
_ODD: tuple[Any, ...] = (
    None,
    True,
    False,
    [],
    {},
    [[]],
    {"a": 1},
    "",
    ".*",
    "orders",
    "[",
    "(a+)+$",
    "([.]|[.][.])+Z",
    1.5,
    1e308,
    -0.0,
)


def _value(random: Random) -> Any:
    one = random.choice((*_ODD, *_TEXTS, *EXTREMES, "x" * 3000, float("nan"), float("inf")))
    return [one] * random.randrange(4) if random.random() < 0.3 else one


def _json(valid: dict[str, Any], random: Random) -> bytes:
    """Return damaged bytes, or an object with other values."""
    if random.random() < 0.3:
        return mutated(json.dumps(valid).encode(), random)
    changed = dict(valid)
    for _ in range(random.randrange(1, 4)):
        name = random.choice((*valid, *_TEXTS))
        if random.random() < 0.2:
            changed.pop(name, None)
        else:
            changed[name] = _value(random)
    return json.dumps(changed).encode()


class Cutovers(Target):
    """Definitions of cutovers, as stored in the ledger and in files."""

    name = "cutover-definitions"
    what = "definitions of cutovers"
    errors = (MirrorError, ValueError, TypeError)
    _valid = CutoverDefinition(
        name="scope-1", flow="berlin->cloud", topics=("orders.*",), writers=("User:a",)
    ).to_dict()

    def make(self, random: Random) -> bytes:
        """Return JSON."""
        return _json(self._valid, random)

    def run(self, data: bytes) -> str:
        """Parse, serialize and compare."""
        content = json.loads(data)
        if not isinstance(content, dict):
            return "no object"
        found = CutoverDefinition.from_dict(content)
        again = CutoverDefinition.from_dict(json.loads(json.dumps(found.to_dict())))
        if again.topics != found.topics:
            raise Wrong("a definition was not read as it was written")
        return f"{found.style}, {found.fence}"


class Forms(Target):
    """`dag_run.conf` of every DAG, validated like Airflow does and then read by the project's tasks."""

    name = "airflow-forms"
    what = "dag_run.conf of every kind of DAG"
    weight = 0.4

    def make(self, random: Random) -> bytes:
        """Return one byte for the form, then JSON."""
        forms = _forms()
        which = random.randrange(len(forms))
        form, _ = forms[which]
        return bytes((which,)) + _json({name: param.resolve() for name, param in form.items()}, random)

    def run(self, data: bytes) -> str:
        """Check that everything that Airflow accepts is parsed or rejected by an error of the project."""
        from airflow.exceptions import ParamValidationError
        from airflow.sdk.definitions.param import ParamsDict

        form, read = _forms()[(data[0] if data else 0) % len(_forms())]
        try:
            content = json.loads(data[1:])
        except (ValueError, RecursionError):
            return "no JSON"
        if not isinstance(content, dict):
            return "no object"
        params = ParamsDict(dict(form))
        try:
            params.update(content)
            values = params.validate()
        except (ParamValidationError, ValueError) as error:
            return f"refused by Airflow: {type(error).__name__}"
        try:
            return f"{type(read(values)).__name__}"
        except (MirrorError, ValueError) as error:
            return f"refused by us: {type(error).__name__}"


@cache
def _forms() -> tuple[tuple[dict[str, Any], Any], ...]:
    from mirror_lib.airflow.flow.form import job_arguments, trigger_form
    from mirror_lib.airflow.forms.fields import chosen_topics, chosen_values
    from mirror_lib.config.loader import load
    from mirror_lib.features.backfill.airflow.form import BackfillChoices, backfill_form
    from mirror_lib.features.cutover.airflow.after_disaster.dag import after_disaster_form
    from mirror_lib.features.cutover.airflow.form import cutover_form, definition_from
    from mirror_lib.features.verify.airflow.form import verify_form
    from mirror_lib.features.verify.job_arguments import VerifyArguments

    flow = load(_config()).flows[0]
    return (
        (trigger_form(flow), partial(job_arguments, str(flow.flow), "/f")),
        (backfill_form(flow), BackfillChoices.from_params),
        (verify_form(flow), partial(chosen_values, VerifyArguments)),
        (cutover_form(flow), lambda params: definition_from(params, str(flow.flow), "scope-1")),
        (after_disaster_form(flow), chosen_topics),
    )


_KEPT: list[tempfile.TemporaryDirectory[str]] = []


@cache
def _config() -> Path:
    keeper = tempfile.TemporaryDirectory(prefix="mirror-fuzz-page-")
    _KEPT.append(keeper)
    config = write_config(Path(keeper.name), STORIES[:3])
    seed(config, STORIES[:3], observations=3)
    return config


class PageRequests(Target):
    """Requests to every route of the page."""

    name = "page-requests"
    what = "requests to every route of the page"
    weight = 0.4

    def make(self, random: Random) -> bytes:
        """Return a request as JSON: number of the route, path, query, and body as text."""
        routes = routes_of(_app())
        which = random.randrange(len(routes))
        route = routes[which]
        path, query = route.path_values(), route.query_values()
        for values, names in ((path, route.in_path), (query, route.in_query)):
            if names and random.random() < 0.5:
                values[random.choice(names)] = str(_value(random))
        body = b"" if route.order() is None else _json(route.order() or {}, random)
        return json.dumps([which, path, query, body.decode("latin-1")]).encode()

    def run(self, data: bytes) -> str:
        """Check that no request causes an internal error."""
        which, path, query, body = json.loads(data)
        route = routes_of(_app())[which]
        address = route.path
        for name, value in path.items():
            address = address.replace(f"{{{name}}}", quote(value, safe="", errors="surrogatepass"))
        address += f"?{urlencode(query, errors='surrogatepass')}" if query else ""
        answer = asyncio.run(_ask(route.method, address, body.encode("latin-1")))
        if answer.status_code >= 500:
            raise Wrong(f"{route}: {answer.status_code} {answer.text[:200]}")
        return f"{route}: {answer.status_code}"


async def _ask(method: str, address: str, body: bytes) -> httpx.Response:
    transport = httpx.ASGITransport(_app(), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://page.example") as client:
        return await client.request(method, address, headers=ACTION, content=body)


@cache
def _app() -> Any:
    return page_app(_config(), Airflow(), MIRROR_PAGE_LIMITS="actions=0,lists=0,metrics=0")


TARGETS = (Cutovers(), Forms(), PageRequests())
