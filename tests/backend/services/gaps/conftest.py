"""A trained project that all tests of gaps copy."""

import pytest

from tests.backend.services.politeness import texts
from tests.backend.services.workshop import trained, workshop_of


@pytest.fixture(scope="package")
def template(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("trained"))


@pytest.fixture
def shop(template, tmp_path):
    """A copy of it, everything encoded."""
    made = workshop_of(template, tmp_path / "shop")
    made.features.texts(texts())
    yield made
    made.close()
