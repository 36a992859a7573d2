"""A seeded ledger and its page, asked without a server in between."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_lib.ledger.location import FILE_NAME
from tests.support.ledger.ledgers import copied
from tests.support.ledger.seeded import STORIES, seed, write_config
from tests.support.page.app import Airflow, page_app
from tests.support.page.client import Client


@pytest.fixture(scope="session")
def seeded_config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For tests that only read."""
    config = write_config(tmp_path_factory.mktemp("seeded"))
    seed(config, observations=100)
    return config


@pytest.fixture(scope="session")
def _three_flows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = write_config(tmp_path_factory.mktemp("three"), STORIES[:3])
    seed(config, STORIES[:3], observations=3)
    return config


@pytest.fixture
def own_config(_three_flows: Path, tmp_path: Path) -> Path:
    """For tests that change something."""
    copied(_three_flows.parent / FILE_NAME, tmp_path / FILE_NAME)
    return write_config(tmp_path, STORIES[:3])


@pytest.fixture
def airflow() -> Airflow:
    return Airflow()


@pytest.fixture
def client(seeded_config: Path, airflow: Airflow) -> Client:
    return Client(page_app(seeded_config, airflow))


@pytest.fixture
def acting(own_config: Path, airflow: Airflow) -> Client:
    return Client(page_app(own_config, airflow))
