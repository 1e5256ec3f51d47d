"""Every environment variable that Polyvox reads, as data: name, type, default, unit, help, bounds.

The fields of `Settings` are the one place where a setting is declared; `SETTINGS` is read off them, and the parser, the
table in docs/settings.md and the messages of `SettingsError` are made from `SETTINGS`. The environment is read once, by
`Settings.from_env`; no other module looks at `os.environ`.

A secret may also come from a file, which its variable with `_FILE` at the end names: Docker and systemd do it so.

Invariants: a `Settings` object is complete and valid (checked however it is made); folders are absolute; URLs have no
trailing slash; no secret appears in `repr`, in `describe` or in an error message.
"""

# ruff: noqa: RUF009  (declaring the fields by a call is what makes the settings data)
from __future__ import annotations

import difflib
import logging
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, get_type_hints

from backend.errors import SettingsError
from backend.masking import masked
from backend.setting import LOG_LEVELS, Setting, setting

logger = logging.getLogger(__name__)

PREFIX = "POLYVOX_"

# Names that other ML backends of the ecosystem use; people set them by habit.
COMMON_MISTAKES = {
    "LABEL_STUDIO_HOST": "LABEL_STUDIO_URL",
    "LABEL_STUDIO_HOSTNAME": "LABEL_STUDIO_URL",
    "LABEL_STUDIO_ACCESS_TOKEN": "LABEL_STUDIO_API_KEY",
    "LABEL_STUDIO_API_TOKEN": "LABEL_STUDIO_API_KEY",
    "REDIS_HOST": "REDIS_URL",
}
# Read by what runs inside Label Studio and by the demo; an environment may be shared with them.
READ_BY_LABEL_STUDIO_PART = frozenset({"POLYVOX_SHOW_ALL_TABS", "POLYVOX_LABEL_STUDIO_VENV"})


HTTP = r"https?://[^\s]+"
NO_LOGIN = r"https?://(?![^/\s]*@)[^\s]+"  # addresses are shown on pages; a login in one would be shown with it


@dataclass(frozen=True, kw_only=True, repr=False)
class Settings:
    """All settings of one process. Make it with `from_env`; tests may construct it directly."""

    data_dir: Path = setting(
        Path("data"), "Everything that Polyvox writes lives here: database, checkpoints, feature cache.", unit="folder")
    database_url: str = setting(
        "", "SQLAlchemy address of the database; empty means SQLite in the data folder.", env="DATABASE_URL",
        words="an SQLAlchemy address")
    model_dir: Path = setting(
        Path(), "Folder of the checkpoints; empty means `models` in the data folder.", env="MODEL_DIR", unit="folder")
    redis_url: str = setting(
        "", "Redis that wakes job machines; empty means that job processes look into the database.", env="REDIS_URL",
        pattern=r"(rediss?|unix)://[^\s]+", words="a redis://, rediss:// or unix:// address")

    label_studio_url: str = setting(
        "", "Address of Label Studio, as Polyvox reaches it (no name and password in it).", env="LABEL_STUDIO_URL",
        unit="url", pattern=NO_LOGIN,
        words="an http:// or https:// address, without a name and password in it")
    label_studio_api_key: str = setting(
        "", "Access token of a Label Studio account that sees the projects (personal or legacy token).",
        env="LABEL_STUDIO_API_KEY", secret=True)
    url: str = setting(
        "", "Address of Polyvox, as Label Studio reaches it; with it Polyvox registers its own webhook.",
        unit="url", pattern=HTTP)
    webhook_secret: str = setting(
        "", "Secret that webhooks must carry in the header X-Polyvox-Secret.", secret=True)
    allowed_hosts: str = setting(
        "", "Names besides those of `POLYVOX_URL` and of this machine under which Polyvox may be asked, such as "
        "`polyvox.example.org, *.lan`; `*` for every name.",
        pattern=r"[\w.*\- ]+(\s*,\s*[\w.*\- ]+)*", words="names of hosts with commas between them")
    without_login: bool = setting(
        False, "Start on a public address although no login or no webhook secret is set.")
    basic_auth_user: str = setting("", "User name for basic auth on everything but /health.", env="BASIC_AUTH_USER",
                                   pattern=r"[^:]+", words="text without a colon")
    basic_auth_pass: str = setting("", "Password for basic auth.", env="BASIC_AUTH_PASS", secret=True)
    secret_key: str = setting(
        "", "Key under which annotators' tokens are encrypted; empty means the file `secret.key` in the data folder, "
        "which is made when it is needed.", pattern=r"[A-Za-z0-9_-]{43}=", words="a Fernet key", secret=True)
    disk_free_mb: float = setting(
        200.0, "Where less is left on the disk of the data folder or of the checkpoints, the status says so; 0 "
        "switches it off.", unit="MB", least=0)
    log_level: str = setting("INFO", "How much is logged.", env="LOG_LEVEL", choices=LOG_LEVELS)

    encoder: str = setting(
        "minilm", "Text encoder: `minilm` (ships along), a local folder, or a Hugging Face name (safetensors only).")
    encoder_max_tokens: int = setting(
        256, "Longer texts are read by their head and tail.", unit="tokens", least=16, most=8192)
    image_encoder: str = setting(
        "efficientnet-lite0", "Image encoder: `efficientnet-lite0` (ships along), a local folder, or a Hugging Face "
        "name of a vision model (safetensors only). Videos are seen by it, frame by frame.")
    sound_encoder: str = setting(
        "whisper-tiny", "Sound encoder: `whisper-tiny` (ships along), a local folder, or a Hugging Face name of a "
        "Whisper-like model (safetensors only).")
    media_hosts: str = setting(
        "", "Hosts besides Label Studio that images, sounds and videos are read from, such as "
        "`img.example.org, *.cdn.example.org`; `*` for every public host.",
        pattern=r"[\w.*:\- ]+(\s*,\s*[\w.*:\- ]+)*", words="names of hosts with commas between them")
    media_private: bool = setting(
        False, "Read media from those hosts also where they have private addresses (localhost, 10.x, 192.168.x).")
    media_max_mb: float = setting(64.0, "Larger images, sounds and videos are not read.", unit="MB", least=0.01,
                                  most=4096)
    media_timeout_s: float = setting(30.0, "A file that takes longer to come is not read.", unit="seconds", least=0.1,
                                     most=600)
    media_cache_mb: int = setting(1024, "Size cap of the cache of fetched files.", unit="MB", least=1)
    device: str = setting(
        "auto", "Where networks run.", pattern=r"auto|cpu|mps|cuda(:\d+)?", words="auto, cpu, mps, cuda or cuda:N")
    train_threads: int = setting(1, "CPU threads of a training.", unit="threads", least=1, most=1024)
    feature_cache_mb: int = setting(
        2048, "Size cap of the cache of encoded content.", unit="MB", least=16)

    min_votes: int = setting(20, "No training before a project has this many votes.", unit="votes", least=1,
                             per_project=True)
    train_after_votes: int = setting(10, "Train after this many new votes.", unit="votes", least=1, per_project=True)
    train_after_quiet_s: float = setting(
        20.0, "Train after fewer new votes, when this long none has come.", unit="seconds", least=0, per_project=True)
    heldout_percent: float = setting(20.0, "Share of the tasks that is never trained on and judges each version.",
                                     unit="percent", least=1, most=50)
    echo_weight: float = setting(0.3, "Weight in training of votes that accept a pre-annotation unchanged.",
                                 least=0, most=1)
    control_arm_percent: float = setting(
        10.0, "Share of the task-annotator pairs from which pre-annotations are withheld, so that scores are honest; "
        "0 switches it off. The middleware in Label Studio must be given the same.", unit="percent", least=0, most=100)
    shadow_mode: bool = setting(False, "Make and score predictions, but show none.", per_project=True)
    mask_names: bool = setting(
        False, "Show annotators as \"Annotator 1\" in the pages, the API, reports and exports.", per_project=True)

    shared_regions: bool = setting(
        False, "Predictions also carry regions that two or more annotators drew at the same place; otherwise only "
        "those that a task came with, and to an annotator those that they drew themselves.", per_project=True)
    region_attention: bool = setting(
        False, "Write into the `meta` of predicted regions which parts of a task the annotator's query looks at; "
        "costs one more reading of the task by the network.", per_project=True)
    annotators_per_task: int = setting(
        8, "Own predictions in one answer of /predict, most active annotators first; 0 answers the consensus only.",
        unit="annotators", least=0, most=1000, per_project=True)
    own_next_tasks: int = setting(200, "Own predictions are delivered for this many next tasks of each annotator.",
                                  unit="tasks", least=0, per_project=True)
    own_active_days: float = setting(14.0, "Own predictions are delivered to annotators who labelled within this time.",
                                     unit="days", least=0, per_project=True)
    own_max_annotators: int = setting(20, "Own predictions are delivered to at most this many annotators a project.",
                                      unit="annotators", least=0, per_project=True)
    middleware: bool = setting(
        True, "The `labelstudio` middleware is installed in Label Studio. Without it Label Studio cannot tell "
        "annotators apart, and the control arm withholds whole tasks.")
    draft_next_tasks: int = setting(
        20, "Drafts are made for this many next tasks of each annotator who gave their token; only without the "
        "middleware.", unit="tasks", least=0, most=1000, per_project=True)
    deliver: bool = setting(True, "Deliver predictions to Label Studio in bulk.", per_project=True)
    consensus_every_s: float = setting(300.0, "Shortest time between two deliveries of the consensus.",
                                       unit="seconds", least=0, per_project=True)
    predict_deadline_s: float = setting(2.0, "Answer /predict for one task within this time (an annotator waits).",
                                        unit="seconds", least=0.05, most=90)
    predict_batch_deadline_s: float = setting(90.0, "Answer /predict for several tasks within this time.",
                                              unit="seconds", least=0.05, most=95)
    gap_policy: str = setting(
        "expected-change", "By what the next labels to ask for are chosen.", per_project=True,
        choices=("expected-change", "uncertainty", "disagreement", "bald", "diverse-batch", "random"))
    gap_budget: int = setting(100, "Labels that are proposed at a time.", unit="labels", least=0, most=10_000,
                              per_project=True)
    gap_per_task: int = setting(1, "New labels of one task that are proposed at a time.", unit="labels", least=1,
                                most=100, per_project=True)
    gap_cost: str = setting(
        "time", "What a label costs: the `time` that the annotator usually takes, or all `equal`.",
        choices=("time", "equal"), per_project=True)
    gap_tabs: bool = setting(
        False, "Keep a tab in Label Studio's Data Manager for each annotator, with the tasks to label next.",
        per_project=True)
    gaps_every_s: float = setting(60.0, "Shortest time between two looks at what to ask for next.", unit="seconds",
                                  least=0)
    max_body_mb: float = setting(64.0, "Larger request bodies are refused with 413.", unit="MB", least=0.001, most=4096)

    reconcile_every_s: float = setting(300.0, "Look for changes in Label Studio that no webhook told of.",
                                       unit="seconds", least=0.1)
    sweep_every_s: float = setting(3600.0, "Compare all task ids with Label Studio, to see deletions.",
                                   unit="seconds", least=0.1)
    sync_delay_s: float = setting(0.5, "Wait this long after a webhook before refetching, to gather several.",
                                  unit="seconds", least=0, most=3600)
    job_lease_s: float = setting(60.0, "A job whose process shows no sign of life for this long is taken over.",
                                 unit="seconds", least=0.1)
    job_attempts: int = setting(3, "A job fails for good after this many attempts.", unit="attempts", least=1, most=100)
    embedded_jobs: bool = setting(True, "Web processes start a job process of their own, where REDIS_URL is not set.")

    def __post_init__(self) -> None:
        for each in SETTINGS:
            object.__setattr__(self, each.name, each.check(getattr(self, each.name)))
        # An empty path is the current folder, absolute by now; nobody wants checkpoints there.
        if self.model_dir == Path().absolute():
            object.__setattr__(self, "model_dir", self.data_dir / "models")
        if not self.database_url:
            object.__setattr__(self, "database_url", f"sqlite:///{self.data_dir / 'polyvox.sqlite3'}")
        if bool(self.basic_auth_user) != bool(self.basic_auth_pass):
            raise SettingsError("BASIC_AUTH_USER and BASIC_AUTH_PASS go together; only one of them is set.")

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Settings:
        """Read the environment. An empty variable counts as not set. Logs a warning for each one that is ignored.

        Raises `SettingsError` with a sentence that names the variable and what it takes; also for a file of a secret
        that cannot be read, is empty, or is given besides the secret itself.
        """
        texts = {each: _text_of(each, env) for each in SETTINGS}
        settings = cls(**{each.name: each.parse(text) for each, text in texts.items() if text.strip()})
        for sentence in ignored(env, settings):
            logger.warning(sentence)
        return settings

    def for_project(self, overrides: Mapping[str, Any]) -> Settings:
        """These settings with a project's own on top. Raises `SettingsError` for those that are service-wide."""
        for name in overrides:
            if name not in BY_NAME or not BY_NAME[name].per_project:
                raise SettingsError(f"{name} is not a setting that a project can override.")
        return replace(self, **overrides)

    def describe(self) -> dict[str, str]:
        """Environment name -> value as text; secrets only as set or not set."""
        return {each.env: _shown(each, getattr(self, each.name)) for each in SETTINGS}

    def __repr__(self) -> str:
        return "Settings(" + ", ".join(f"{name}={value}" for name, value in self.describe().items()) + ")"


def _read_off(cls: type) -> tuple[Setting, ...]:
    types = get_type_hints(cls)
    found = []
    for each in fields(cls):
        about = dict(each.metadata)
        about["env"] = about["env"] or PREFIX + each.name.upper()
        found.append(Setting(name=each.name, type=types[each.name], **about))
    return tuple(found)


SETTINGS: tuple[Setting, ...] = _read_off(Settings)
BY_NAME = {each.name: each for each in SETTINGS}


def _text_of(each: Setting, env: Mapping[str, str]) -> str:
    """What the environment says, "" where it says nothing. Raises `SettingsError` for a file that is of no use."""
    direct, file = env.get(each.env, ""), env.get(each.env_file, "").strip() if each.secret else ""
    if not file:
        return direct
    if direct.strip():
        raise SettingsError(f"{each.env} and {each.env_file} are both set; only one of them can hold.")
    try:
        text = Path(file).expanduser().read_text(encoding="utf-8").strip()
    except (OSError, ValueError):  # ValueError: no UTF-8, or a NUL in the path
        text = ""
    if not text or len(text.splitlines()) > 1:
        # The name is not repeated: it may be the secret itself, in the wrong variable.
        raise SettingsError(f"{each.env_file} takes the name of a readable text file with one line, the secret.")
    return text


def ignored(env: Mapping[str, str], settings: Settings) -> list[str]:
    """One sentence for each variable that is set but has no effect, and for combinations that do nothing."""
    known = {name for each in SETTINGS for name in (each.env, each.env_file) if name} | READ_BY_LABEL_STUDIO_PART
    sentences = []
    for name in sorted(env):
        if name.startswith(PREFIX) and name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
            hint = f"; did you mean {near[0]}?" if near else "."
            sentences.append(f"{name} is ignored, there is no such setting{hint}")
    for name, right in COMMON_MISTAKES.items():
        if env.get(name) and not (env.get(right) or env.get(right + "_FILE")):
            sentences.append(f"{name} is ignored; Polyvox reads {right}.")
    if settings.label_studio_url and not settings.label_studio_api_key:
        sentences.append("LABEL_STUDIO_API_KEY is not set: Polyvox can neither read annotations nor deliver.")
    if settings.label_studio_api_key and not settings.label_studio_url:
        sentences.append("LABEL_STUDIO_API_KEY is ignored while LABEL_STUDIO_URL is not set.")
    if settings.url and not (settings.label_studio_url and settings.label_studio_api_key):
        sentences.append("POLYVOX_URL is ignored: registering a webhook needs LABEL_STUDIO_URL and an API key.")
    return sentences


def settings_table() -> str:
    """The Markdown table of docs/settings.md."""
    lines = ["| Variable | Takes | Default | What it does |", "| --- | --- | --- | --- |"]
    for each in SETTINGS:
        default = _default_text(each)
        mark = " Projects can override it." if each.per_project else ""
        mark += f" Or in the file that `{each.env_file}` names." if each.secret else ""
        lines.append(f"| `{each.env}` | {each.takes} | {default} | {each.help}{mark} |")
    return "\n".join(lines) + "\n"


def _default_text(each: Setting) -> str:
    if each.type is bool:
        return "yes" if each.default else "no"
    if each.name == "data_dir":
        return "`./data`"
    if each.default in ("", Path()):
        return "empty"
    return f"`{each.default:g}`" if each.type in (int, float) else f"`{each.default}`"


def _shown(each: Setting, value: Any) -> str:
    if each.secret:
        return "set" if value else "not set"
    return masked(str(value))
