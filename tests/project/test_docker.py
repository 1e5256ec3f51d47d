"""The containers, as far as they can be checked without an engine: what the files say, against what the project has.

tests/e2e/test_container_commands.py runs the images' commands.
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography.fernet import Fernet

from backend import settings as settings_module
from backend.app import OPEN_ROUTES
from backend.commands import COMMANDS
from backend.settings import Settings
from docker.make_env import files, main
from labelstudio.options import CONTROL_ARM_PERCENT
from tests.project.docker_files import ROOT, ignored, stages, words

DOCKERFILES = ("docker/Dockerfile", "docker/label-studio.Dockerfile")
COMPOSE = ("docker/compose.yaml", "docker/compose.gpu.yaml")
BIN = Path(sys.executable).parent
POLYVOX = stages(ROOT / "docker/Dockerfile")


@pytest.fixture(params=DOCKERFILES)
def dockerfile(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / COMPOSE[0]).read_text())
    return loaded


def test_the_linter_finds_nothing(dockerfile: str) -> None:
    check = subprocess.run([BIN / "hadolint", "--no-color", dockerfile], cwd=ROOT, capture_output=True, text=True)
    assert (check.returncode, check.stdout) == (0, ""), check.stdout + check.stderr


def test_what_is_copied_exists_and_is_not_ignored(dockerfile: str) -> None:
    copied = [source for stage in stages(ROOT / dockerfile) for source, _ in stage.copied()]
    assert copied
    for source in copied:
        assert (ROOT / source).exists(), source
        assert not ignored(source), f"{source} is kept out by .dockerignore"


@pytest.mark.parametrize("path", [".git/config", "data/polyvox.sqlite3", "local/x", "docker/polyvox.env", "tests/a.py",
                                  "backend/__pycache__/x.pyc", ".venv/bin/python", "requirements-dev.txt", ".env"])
def test_the_build_never_sees(path: str) -> None:
    assert ignored(path)


def test_the_build_sees_the_modules() -> None:
    assert not ignored("backend/store/migrations/versions/0001_first_schema.py")
    assert not ignored("backend/templates/status.html")


def test_everything_that_is_installed_is_pinned(dockerfile: str) -> None:
    runs = [text for stage in stages(ROOT / dockerfile) for text in stage.all("RUN")]
    installs = re.findall(r"pip install ([^;&]*)", " ".join(runs))
    assert installs
    for arguments in installs:
        lists = re.findall(r"-r (\S+)", arguments)
        assert lists or re.search(r"\^torch==", arguments), arguments
        for name in lists:
            lines = [line for line in (ROOT / name).read_text().splitlines() if line and not line.startswith("#")]
            assert lines and all("==" in line for line in lines), name
            assert ("--hash=sha256:" in lines[0]) == ("--require-hashes" in arguments), name
    assert not re.search(r"apt-get|curl|wget|\bgit\b", " ".join(runs))


def test_all_requirements_are_installed() -> None:
    runs = " ".join(POLYVOX[0].all("RUN"))
    assert "-r requirements.txt" in runs and "--no-deps --require-hashes -r requirements-nodeps.txt" in runs


def test_it_does_not_run_as_root(dockerfile: str) -> None:
    final = stages(ROOT / dockerfile)[-1]
    user = final.last("USER")
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    names = [name for name, _ in final.lines]
    assert names.index("USER") > max(place for place, name in enumerate(names) if name in ("COPY", "RUN"))
    assert f"--uid {user.partition(':')[0]}" in " ".join(final.all("RUN"))


def test_nothing_is_built_in_the_image_that_is_shipped(dockerfile: str) -> None:
    builder, final = stages(ROOT / dockerfile)
    assert builder.base == final.base and ":" in final.base and not final.base.endswith(":latest")
    assert "pip install" not in " ".join(final.all("RUN"))


def test_no_secret_is_baked_in(dockerfile: str) -> None:
    text = (ROOT / dockerfile).read_text()
    assert not re.search(r"(TOKEN|SECRET|PASS|API_KEY)\w*=\S", text)


def test_ports_and_health_agree() -> None:
    final = POLYVOX[-1]
    command, health = words(final.last("CMD")), final.last("HEALTHCHECK")
    port = command[command.index("--port") + 1]
    assert final.last("EXPOSE") == port
    found = re.search(r"http://127\.0\.0\.1:(\d+)(/\w+)'", health)
    assert found and found[1] == port and found[2] in OPEN_ROUTES
    label_studio = stages(ROOT / DOCKERFILES[1])[-1]
    assert words(label_studio.last("ENTRYPOINT"))[-1] == label_studio.last("EXPOSE") == "8080"
    assert "http://127.0.0.1:8080/health" in label_studio.last("HEALTHCHECK")


def test_the_environment_of_the_image_is_known() -> None:
    known = {each.env for each in settings_module.SETTINGS}
    ours = [name for name in POLYVOX[-1].env() if name.startswith("POLYVOX_")]
    assert ours and set(ours) <= known


def by_default(value: str) -> str:
    """A value of the compose file where nothing is set in compose's own environment."""
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value)


@pytest.mark.parametrize("name", COMPOSE)
def test_compose_follows_its_specification(name: str) -> None:
    command = [BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", name]
    check = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert check.returncode == 0, check.stdout + check.stderr


def test_what_compose_names_exists(compose: dict[str, Any]) -> None:
    services = compose["services"]
    for service in services.values():
        build = service.get("build")
        if build:
            assert (ROOT / "docker" / build["context"]).resolve() == ROOT
            dockerfile = ROOT / build["dockerfile"]
            declared = {text.partition("=")[0] for stage in stages(dockerfile) for text in stage.all("ARG")}
            assert set(build.get("args", {})) <= declared
        assert set(service.get("env_file", ())) <= set(files(""))
        assert set(service["networks"]) <= set(compose["networks"])
        used = {volume.partition(":")[0] for volume in service.get("volumes", ())}
        assert used <= set(compose["volumes"])
        assert set(service.get("depends_on", ())) <= set(services)
        assert "image" in service and "latest" not in service["image"]
    assert services["worker"]["image"] == services["polyvox"]["image"]
    overridden = yaml.safe_load((ROOT / COMPOSE[1]).read_text())["services"]
    assert set(overridden) <= set(services)


def test_addresses_are_ones_that_label_studio_takes(compose: dict[str, Any]) -> None:
    services = compose["services"]
    for service in ("polyvox", "worker"):
        env = services[service]["environment"]
        for variable, target in (("POLYVOX_URL", "polyvox"), ("LABEL_STUDIO_URL", "label-studio")):
            host, _, port = by_default(env[variable]).removeprefix("http://").partition(":")
            assert "." in host and host in services[target]["networks"]["labeling"]["aliases"]
            assert services[target]["ports"][0].endswith(f":{port}")
        assert env["REDIS_URL"].startswith("redis://redis:")
        assert "label-studio" not in services[service].get("depends_on", ())  # it may run elsewhere
        assert "labeling" in services[service]["networks"] and "jobs" in services[service]["networks"]


def test_label_studio_has_both_switches_and_the_same_control_arm(compose: dict[str, Any]) -> None:
    label_studio, polyvox = (compose["services"][name]["environment"] for name in ("label-studio", "polyvox"))
    assert label_studio["ML_BLOCK_LOCAL_IP"] == label_studio["SSRF_PROTECTION_ENABLED"] == "false"
    assert label_studio[CONTROL_ARM_PERCENT] == polyvox[CONTROL_ARM_PERCENT]


def test_only_this_machine_can_reach_what_is_published(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        assert all(by_default(port).startswith("127.0.0.1:") for port in service.get("ports", ())), name
        assert service["cap_drop"] == ["ALL"] and "no-new-privileges:true" in service["security_opt"]
    redis = compose["services"]["redis"]
    assert "ports" not in redis and not set(redis["networks"]) & set(compose["services"]["label-studio"]["networks"])
    assert compose["networks"]["jobs"]["internal"] is True


def test_web_and_worker_share_their_data(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert services["polyvox"]["volumes"] == services["worker"]["volumes"] == ["polyvox-data:/data"]
    assert POLYVOX[-1].last("VOLUME") == POLYVOX[-1].env()["POLYVOX_DATA_DIR"] == "/data"


def test_no_secret_stands_in_compose(compose: dict[str, Any]) -> None:
    secret = {each.env for each in settings_module.SETTINGS if each.secret} | set(files("")["label-studio.env"])
    for service in compose["services"].values():
        assert not secret & set(service.get("environment", ()))


def test_the_environment_files_fit_the_settings(compose: dict[str, Any], tmp_path: Path) -> None:
    assert main(["me@example.org"], tmp_path) == 0
    made = {name: (tmp_path / name).read_text() for name in files("")}
    assert all(stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600 for name in made)
    variables = {name: dict(line.split("=", 1) for line in text.splitlines()) for name, text in made.items()}
    environment = {name: by_default(value) for name, value in compose["services"]["polyvox"]["environment"].items()}
    env = environment | variables["polyvox.env"] | {"POLYVOX_DATA_DIR": str(tmp_path)}
    settings = Settings.from_env(env)
    assert settings_module.ignored(env, settings) == []
    assert settings.url and settings.redis_url and settings.webhook_secret and settings.basic_auth_pass
    Fernet(settings.secret_key)
    token = variables["label-studio.env"]["LABEL_STUDIO_USER_TOKEN"]
    assert re.fullmatch(r"[0-9a-f]{40}", token) and settings.label_studio_api_key == token
    assert variables["label-studio.env"]["LABEL_STUDIO_USERNAME"] == "me@example.org"
    assert main([], tmp_path) == 1
    assert {name: (tmp_path / name).read_text() for name in made} == made


def test_the_files_with_secrets_are_ignored_by_git() -> None:
    for name in files(""):
        check = subprocess.run(["git", "check-ignore", "-q", f"docker/{name}"], cwd=ROOT, env=os.environ)
        assert check.returncode == 0, name


# What the pages say


@pytest.mark.parametrize("page", ["docs/docker.md", "docs/label-studio.md"])
def test_the_pages_name_variables_commands_and_files_that_exist(page: str) -> None:
    text = (ROOT / page).read_text()
    known = {name for each in settings_module.SETTINGS for name in (each.env, each.env_file)}
    known |= settings_module.READ_BY_LABEL_STUDIO_PART | set(re.findall(r"\$\{(\w+)", (ROOT / COMPOSE[0]).read_text()))
    named = set(re.findall(r"\b((?:POLYVOX|LABEL_STUDIO|BASIC_AUTH)_[A-Z_]+|DATABASE_URL|REDIS_URL)\b", text))
    assert named and named <= known, named - known
    commands = set(re.findall(r"python -m backend ([a-z-]+)", text))
    assert commands and commands <= {command.name for command in COMMANDS}
    for link in re.findall(r"\]\((?!http)([^)#]+)", text):
        assert (ROOT / "docs" / link).exists(), link
    for path in re.findall(r"\b((?:docker|tests)/[\w./-]+\w)\b", text):
        assert (ROOT / path).exists() or path.removeprefix("docker/") in files(""), path


def test_defaults_that_the_pages_tell_are_the_defaults() -> None:
    text = (ROOT / "docs/label-studio.md").read_text()
    told = dict(re.findall(r"`(POLYVOX_[A-Z_]+)`\s+\((\d+)\)", text)) | dict(
        re.findall(r"`(POLYVOX_[A-Z_]+)`\s+seconds \((\d+) by default\)", text))
    assert len(told) >= 3
    defaults = {each.env: each.default for each in settings_module.SETTINGS}
    assert all(float(value) == defaults[name] for name, value in told.items())
