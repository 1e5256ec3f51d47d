"""A trained project that all tests of gaps copy."""

import pytest

from tests.backend.services.workshop import trained


@pytest.fixture(scope="package")
def template(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("trained"))
