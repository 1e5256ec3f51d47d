"""Settings of the middleware, read from an environment."""

import pytest

from labelstudio.options import Options


def test_defaults() -> None:
    assert Options.from_env({}) == Options(control_arm_percent=10.0, show_all_tabs=False)
    assert Options.from_env({"POLYVOX_CONTROL_ARM_PERCENT": " ", "POLYVOX_SHOW_ALL_TABS": ""}) == Options()


def test_values() -> None:
    env = {"POLYVOX_CONTROL_ARM_PERCENT": "2.5", "POLYVOX_SHOW_ALL_TABS": "True"}
    assert Options.from_env(env) == Options(control_arm_percent=2.5, show_all_tabs=True)


@pytest.mark.parametrize("text", ["-1", "101", "ten", "nan", "inf"])
def test_an_unusable_percentage_stops_the_start_with_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match=r"POLYVOX_CONTROL_ARM_PERCENT takes a number from 0 to 100"):
        Options.from_env({"POLYVOX_CONTROL_ARM_PERCENT": text})


def test_an_unusable_flag_stops_the_start_with_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"POLYVOX_SHOW_ALL_TABS takes true or false"):
        Options.from_env({"POLYVOX_SHOW_ALL_TABS": "perhaps"})
