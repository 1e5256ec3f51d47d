"""Settings: every variable parsed, checked, described; nothing secret is shown."""

from __future__ import annotations

import dataclasses
import logging
import re
from pathlib import Path

import pytest

from backend.errors import SettingsError
from backend.settings import SETTINGS, Settings, ignored, settings_table

SECRET = "s3cr3t-0f-th1s-t3st"
FERNET_KEY = 43 * "k" + "="


def test_an_empty_environment_gives_the_defaults():
    settings = Settings.from_env({})
    assert settings.data_dir == Path("data").absolute()
    assert settings.model_dir == settings.data_dir / "models"
    assert settings.database_url == f"sqlite:///{settings.data_dir}/polyvox.sqlite3"
    assert (settings.min_votes, settings.train_after_votes, settings.train_after_quiet_s) == (20, 10, 20.0)
    assert (settings.middleware, settings.shadow_mode, settings.log_level) == (True, False, "INFO")


def test_folders_follow_the_data_folder_unless_they_are_given(tmp_path):
    assert Settings(data_dir=tmp_path).model_dir == tmp_path / "models"
    assert Settings(data_dir=tmp_path, model_dir=tmp_path / "m").model_dir == tmp_path / "m"
    assert Settings(data_dir=str(tmp_path), database_url="postgresql://h/db").database_url == "postgresql://h/db"


def test_every_setting_can_be_set_by_its_variable():
    samples = {bool: "no", int: "7", float: "7.5", Path: "/somewhere", str: "text"}
    special = {
        "redis_url": "redis://h:1/0", "label_studio_url": "http://h/", "url": "https://h", "log_level": "debug",
        "device": "cuda:1", "echo_weight": "0.5", "encoder_max_tokens": "64", "feature_cache_mb": "100",
        "secret_key": FERNET_KEY, "gap_policy": "bald", "gap_cost": "equal",
    }
    env = {each.env: special.get(each.name, samples[each.type]) for each in SETTINGS}
    settings = Settings.from_env(env)
    for each in SETTINGS:
        assert getattr(settings, each.name) != each.default or each.default is False, each.env
    assert settings.label_studio_url == "http://h"
    assert settings.log_level == "DEBUG"


def test_an_empty_variable_counts_as_not_set():
    assert Settings.from_env({"POLYVOX_MIN_VOTES": " ", "REDIS_URL": ""}) == Settings.from_env({})


@pytest.mark.parametrize("raw, value", [("1", True), ("Yes", True), ("on", True), ("0", False), ("FALSE", False)])
def test_switches_take_the_usual_words(raw, value):
    assert Settings.from_env({"POLYVOX_DELIVER": raw}).deliver is value


@pytest.mark.parametrize("name, raw, takes", [
    ("POLYVOX_MIN_VOTES", "many", "a whole number of at least 1 (votes)"),
    ("POLYVOX_MIN_VOTES", "2.5", "a whole number"),
    ("POLYVOX_MIN_VOTES", "0", "at least 1"),
    ("POLYVOX_CONTROL_ARM_PERCENT", "101", "from 0 to 100"),
    ("POLYVOX_CONTROL_ARM_PERCENT", "nan", "from 0 to 100"),
    ("POLYVOX_CONSENSUS_EVERY_S", "inf", "a number"),
    ("POLYVOX_SHADOW_MODE", "maybe", "yes or no"),
    ("LABEL_STUDIO_URL", "label-studio:8080", "an http:// or https:// address"),
    ("LABEL_STUDIO_URL", "https://me:hush@ls.example.org", "without a name and password"),
    ("REDIS_URL", "localhost", "redis://"),
    ("LOG_LEVEL", "chatty", "DEBUG"),
    ("POLYVOX_DEVICE", "gpu", "cuda"),
    ("BASIC_AUTH_USER", "a:b", "without a colon"),
])
def test_an_unusable_value_is_refused_by_name_and_what_it_takes(name, raw, takes):
    with pytest.raises(SettingsError) as refusal:
        Settings.from_env({name: raw})
    assert name in str(refusal.value) and takes in str(refusal.value)
    assert raw not in str(refusal.value).replace(name, "").replace(takes, "").split()


def test_user_and_password_go_together():
    with pytest.raises(SettingsError, match="BASIC_AUTH_PASS"):
        Settings.from_env({"BASIC_AUTH_USER": "me"})


def test_wrong_types_are_refused_however_the_object_is_made(tmp_path):
    with pytest.raises(SettingsError, match="POLYVOX_MIN_VOTES"):
        Settings(data_dir=tmp_path, min_votes=True)
    with pytest.raises(SettingsError, match="POLYVOX_DELIVER"):
        Settings(data_dir=tmp_path, deliver=1)
    assert Settings(data_dir=tmp_path, consensus_every_s=5).consensus_every_s == 5.0


def test_settings_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Settings().min_votes = 3  # type: ignore[misc]


def test_secrets_are_never_shown():
    settings = Settings.from_env({
        "LABEL_STUDIO_URL": "http://h", "LABEL_STUDIO_API_KEY": SECRET, "BASIC_AUTH_USER": "me",
        "BASIC_AUTH_PASS": SECRET + "2", "POLYVOX_WEBHOOK_SECRET": SECRET + "3",
        "DATABASE_URL": f"postgresql://u:{SECRET}@db/polyvox", "REDIS_URL": f"redis://:{SECRET}@r:6379",
    })
    shown = repr(settings) + str(settings) + str(settings.describe())
    assert SECRET not in shown
    assert "LABEL_STUDIO_API_KEY=set" in shown and "postgresql://***@db/polyvox" in shown


def test_a_refused_secret_is_not_repeated():
    with pytest.raises(SettingsError) as refusal:
        Settings.from_env({"LABEL_STUDIO_URL": SECRET})
    assert SECRET not in str(refusal.value)


def test_secrets_come_from_files_as_well(tmp_path):
    names = [each.env for each in SETTINGS if each.secret]
    assert {"LABEL_STUDIO_API_KEY", "BASIC_AUTH_PASS", "POLYVOX_WEBHOOK_SECRET"} <= set(names)
    env = {"BASIC_AUTH_USER": "me", "LABEL_STUDIO_URL": "http://h"}
    for name in names:
        (tmp_path / name).write_text(FERNET_KEY if name == "POLYVOX_SECRET_KEY" else f"{SECRET}-{name}\n")
        env[name + "_FILE"] = str(tmp_path / name)
    settings = Settings.from_env(env)
    assert settings.label_studio_api_key == f"{SECRET}-LABEL_STUDIO_API_KEY"
    assert settings.basic_auth_pass == f"{SECRET}-BASIC_AUTH_PASS"
    assert settings.webhook_secret == f"{SECRET}-POLYVOX_WEBHOOK_SECRET"
    assert settings.secret_key == FERNET_KEY
    assert SECRET not in repr(settings) and FERNET_KEY not in repr(settings)
    assert ignored(env, settings) == []


@pytest.mark.parametrize("content", [None, b"", b" \n", b"two\nlines", b"\xff\xfe"])
def test_a_file_without_a_secret_is_refused(content, tmp_path):
    """A missing file must not leave the door open without a word."""
    file = tmp_path / "s3cr3t-file"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SettingsError, match="POLYVOX_WEBHOOK_SECRET_FILE") as refusal:
        Settings.from_env({"POLYVOX_WEBHOOK_SECRET_FILE": str(file)})
    assert "s3cr3t" not in str(refusal.value)


def test_a_secret_is_given_once(tmp_path):
    (tmp_path / "key").write_text("a")
    with pytest.raises(SettingsError, match="both set"):
        Settings.from_env({"LABEL_STUDIO_API_KEY": "b", "LABEL_STUDIO_API_KEY_FILE": str(tmp_path / "key")})


def test_files_are_for_secrets_only(caplog):
    with caplog.at_level(logging.WARNING):
        Settings.from_env({"POLYVOX_MIN_VOTES_FILE": "/etc/hostname"})
    assert "POLYVOX_MIN_VOTES_FILE is ignored" in caplog.text


def test_what_is_ignored_is_said(caplog):
    with caplog.at_level(logging.WARNING):
        Settings.from_env({"POLYVOX_MIN_VOTE": "3", "POLYVOX_XYZ": "1", "LABEL_STUDIO_HOST": "http://h"})
    said = " ".join(record.message for record in caplog.records)
    assert "did you mean POLYVOX_MIN_VOTES?" in said
    assert "POLYVOX_XYZ is ignored" in said
    assert "LABEL_STUDIO_HOST is ignored; Polyvox reads LABEL_STUDIO_URL" in said


def test_combinations_without_effect_are_said():
    assert any("POLYVOX_URL" in each for each in ignored({}, Settings(url="http://me")))
    assert any("LABEL_STUDIO_API_KEY" in each for each in ignored({}, Settings(label_studio_url="http://h")))
    whole = Settings(label_studio_url="http://h", label_studio_api_key="k", url="http://me")
    assert ignored({}, whole) == []


def test_projects_override_what_is_theirs():
    settings = Settings(label_studio_api_key=SECRET)
    own = settings.for_project({"shadow_mode": True, "own_active_days": 25})
    assert (own.shadow_mode, own.own_active_days, own.label_studio_api_key) == (True, 25.0, SECRET)
    for wrong in ({"data_dir": "/"}, {"no_such": 1}, {"shadow_mode": "yes"}, {"own_active_days": -1}):
        with pytest.raises(SettingsError):
            settings.for_project(wrong)


def test_what_the_middleware_has_to_know_is_the_same_for_all_projects():
    for name, value in (("control_arm_percent", 25.0), ("middleware", False)):
        with pytest.raises(SettingsError, match="not a setting that a project can override"):
            Settings().for_project({name: value})


def test_the_table_has_one_row_for_each_setting():
    lines = settings_table().splitlines()
    assert len(lines) == 2 + len(SETTINGS)
    for each, line in zip(SETTINGS, lines[2:], strict=True):
        assert line.startswith(f"| `{each.env}` | {each.takes} | ") and line.count("|") == 5
        assert each.help


def test_variables_of_the_part_inside_label_studio_are_known():
    root = Path(__file__).parents[2]
    code = "".join(path.read_text() for path in (root / "labelstudio").glob("*.py"))
    read = set(re.findall(r"POLYVOX_[A-Z_]+", code))
    assert read and ignored(dict.fromkeys(read, "1"), Settings()) == []
