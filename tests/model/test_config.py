import json

import pytest

from model.config import LadderConfig
from model.errors import ModelError


@pytest.mark.parametrize("name", ["polyvox", "paper"])
def test_json_round_trip(name):
    config = LadderConfig.preset(name)
    assert LadderConfig.from_json(json.loads(json.dumps(config.to_json()))) == config


def test_keys_of_a_later_version_are_left_out():
    data = LadderConfig().to_json()
    data["later"] = 1
    data["network"]["later"] = 2
    assert LadderConfig.from_json(data) == LadderConfig()


def test_paper_preset_is_the_papers():
    network = LadderConfig.preset("paper").network
    assert (network.tau, network.learning_rate, network.epochs, network.patience) == (0.0, 1e-4, 200, 25)


def test_unknown_preset():
    with pytest.raises(ModelError, match="polyvox and paper"):
        LadderConfig.preset("other")
