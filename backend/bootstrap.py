"""The one place that chooses implementations: settings -> services.

Nothing here keeps global state: who builds services owns them and closes them. Importing this module is cheap; torch is
loaded by `build_services` only, so that a web server can fork before it and `--help` answers at once.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy.exc import SQLAlchemyError

from backend.errors import BackupError, PolyvoxError
from backend.ports import Clock, Desk, LabelStudio, OpenDesk, Store, utc_now
from backend.queues import EmbeddedQueue, JobQueue, Supervisor
from backend.settings import Settings

if TYPE_CHECKING:
    from backend.client.alive import Alive
    from backend.media import MediaReader
    from backend.queues.doorbell import Doorbell
    from backend.registry import Registry
    from backend.services.annotator_tokens import AnnotatorTokens
    from backend.services.delivery import Delivery
    from backend.services.explanation.service import Explanations
    from backend.services.features import Features
    from backend.services.gaps.service import GapFilling
    from backend.services.ingest import Ingest
    from backend.services.late_writes import LateWrites
    from backend.services.prediction import Prediction
    from backend.services.reconcile import Reconciler
    from backend.services.statistics import Statistics
    from backend.services.storage_watch import StorageWatch
    from backend.services.training import Training
    from backend.services.triggers import Triggers
    from model.encoders import Encoder
    from model.encoders.decoders import Decoder
    from model.encoders.image import ImageEncoder
    from model.encoders.sound import SoundEncoder

logger = logging.getLogger(__name__)

GPU_DRIVERS = ("/proc/driver/nvidia/version", "/dev/dxg", "/dev/kfd")  # native, Windows' Linux, AMD


@dataclass(frozen=True, kw_only=True)
class Services:
    """All that a web process, a job process or a command needs. Build with `build_services`, end with `close`."""

    settings: Settings
    store: Store
    label_studio: LabelStudio
    features: Features
    registry: Registry
    ingest: Ingest
    reconciler: Reconciler
    training: Training
    prediction: Prediction
    explanations: Explanations
    delivery: Delivery
    statistics: Statistics
    gaps: GapFilling
    triggers: Triggers
    alive: Alive
    storage: StorageWatch
    late: LateWrites
    clock: Clock

    def close(self) -> None:
        """Release the database and the feature cache; the services are unusable afterwards."""
        self.features.close()
        self.store.close()


def build_services(
    settings: Settings,
    *,
    store: Store | None = None,
    label_studio: LabelStudio | None = None,
    encoder: Encoder | None = None,
    clock: Clock = utc_now,
    seconds: Callable[[], float] = time.monotonic,
) -> Services:
    """Everything wired up, from the settings alone; tests hand in their own store, Label Studio, encoder or clocks.

    Opens (and migrates) the database. The encoder is loaded at its first use, not here.
    """
    from backend.decoding.pool import DecoderPool
    from backend.registry import Registry
    from backend.services.features import Features

    decoder = DecoderPool()
    store = store or open_store(settings, clock=clock, seconds=seconds)
    features = Features(
        encoder_factory=(lambda: encoder) if encoder is not None else (lambda: load_encoder(settings, decoder)),
        folder=settings.data_dir / "features",
        max_mb=settings.feature_cache_mb,
    )
    registry = Registry(store=store, folder=settings.model_dir, device=device_of(settings), clock=clock)
    return _wired(settings, store, label_studio or open_label_studio(settings), features, registry, decoder, clock,
                  seconds)


def _wired(
    settings: Settings, store: Store, label_studio: LabelStudio, features: Features, registry: Registry,
    decoder: Decoder, clock: Clock, seconds: Callable[[], float],
) -> Services:
    """The services over what they stand on."""
    from backend.client.alive import Alive
    from backend.services.delivery import Delivery
    from backend.services.drafts import Drafts
    from backend.services.explanation.service import Explanations
    from backend.services.gaps.service import GapFilling
    from backend.services.ingest import Ingest
    from backend.services.late_writes import LateWrites
    from backend.services.prediction import Prediction
    from backend.services.reconcile import Reconciler
    from backend.services.statistics import Statistics
    from backend.services.storage_watch import StorageWatch
    from backend.services.training import Training
    from backend.services.triggers import Triggers
    from backend.store.journal import Journal

    late = LateWrites(store, Journal(settings.data_dir / "journal"))
    prediction = Prediction(
        store=store, features=features, registry=registry, settings=settings, clock=clock, late=late)
    drafts = Drafts(
        store=store, label_studio=label_studio, features=features, prediction=prediction,
        tokens=annotator_tokens(settings, store, clock=clock), open_desk=desk_opener(settings), settings=settings,
        clock=clock,
    )
    return Services(
        settings=settings,
        store=store,
        label_studio=label_studio,
        features=features,
        registry=registry,
        late=late,
        ingest=Ingest(store=store, label_studio=label_studio, settings=settings, clock=clock, late=late),
        reconciler=Reconciler(store=store, label_studio=label_studio, settings=settings, clock=clock),
        training=Training(store=store, features=features, registry=registry, settings=settings, clock=clock),
        prediction=prediction,
        explanations=Explanations(
            store=store, features=features, registry=registry, reader=lambda: media_reader(settings),
            decoder=decoder, clock=clock,
        ),
        delivery=Delivery(
            store=store, label_studio=label_studio, features=features, registry=registry, prediction=prediction,
            settings=settings, clock=clock, drafts=drafts,
        ),
        statistics=Statistics(
            store=store, registry=registry, settings=settings, clock=clock, features=features,
        ),
        gaps=GapFilling(
            store=store, label_studio=label_studio, features=features, registry=registry, settings=settings,
            clock=clock,
        ),
        alive=Alive(settings.label_studio_url),
        storage=StorageWatch(store, settings, seconds=seconds),
        triggers=Triggers(store=store, settings=settings, clock=clock, seconds=seconds, take_in=late.try_to_take_in,
                          usable=registry.usable),
        clock=clock,
    )


def open_store(
    settings: Settings, *, clock: Clock = utc_now, seconds: Callable[[], float] = time.monotonic
) -> Store:
    """The database of the settings (SQLite in the data folder by default), migrated to the newest schema."""
    from backend.services.backup import RESTORE, unfinished
    from backend.store import open_store as open_database

    protect(settings.data_dir)
    if unfinished(settings.data_dir):
        raise BackupError(f"A restore into {settings.data_dir} was broken off: run `{RESTORE}` with the archive again, "
                          "which finishes it.")
    return open_database(settings.database_url, clock=clock, seconds=seconds, job_attempts=settings.job_attempts)


def keep_private() -> None:
    """What a server process writes from now on, its owner alone may read."""
    os.umask(0o077)


def protect(folder: Path) -> None:
    """Make the data folder, for its owner alone: it holds votes, names, texts and tokens."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if folder.stat().st_mode & 0o077:
        with suppress(PermissionError):  # a mounted volume of somebody else's; its own rights hold
            folder.chmod(0o700)


def build_queue(services: Services) -> JobQueue:
    """Where a job process of one piece takes its jobs from."""
    return EmbeddedQueue(services.store.jobs, lease_s=services.settings.job_lease_s)


def build_doorbell(settings: Settings, *, limits_s: Mapping[str, float]) -> Doorbell:
    """Redis as a doorbell; connects at its first use. `limits_s`: lane -> how long a job may take."""
    from backend.queues.doorbell import Doorbell, namespace_of, open_redis

    return Doorbell(open_redis(settings), namespace=namespace_of(settings), limits_s=limits_s)


def build_supervisor(settings: Settings, *, asked: bool = False) -> Supervisor | None:
    """What keeps an embedded job process beside a web process; None where there shall be none.

    With REDIS_URL, job machines do the work, and there is one only if it is `asked` for.
    """
    if not settings.embedded_jobs or (settings.redis_url and not asked):
        return None
    return Supervisor(settings, release=lambda name: _release_jobs(settings, name))


def _release_jobs(settings: Settings, name: str) -> None:
    """Take back the jobs of an embedded job process that is gone; where that fails, they wait for their leases."""
    try:
        store = open_store(settings)
        count = store.jobs.release(name, error="The job process died.")
        store.close()
    except (SQLAlchemyError, PolyvoxError) as error:
        logger.error("the jobs of a dead process could not be taken back (%s)", type(error).__name__)
    else:
        if count:
            logger.warning("%d job(s) of a dead process are queued again", count)


def open_label_studio(settings: Settings) -> LabelStudio:
    """The client of the one Label Studio that this instance serves; no request is made here."""
    from backend.client import LabelStudioClient

    return LabelStudioClient(settings)


def desk_opener(settings: Settings) -> OpenDesk:
    """What turns an annotator's token into access to Label Studio; no request is made here."""
    from backend.client import DeskClient

    def open_desk(token: str) -> Desk:
        return DeskClient(settings, token)

    return open_desk


def annotator_tokens(settings: Settings, store: Store, *, clock: Clock = utc_now) -> AnnotatorTokens:
    """The tokens that annotators gave, and the key that they are encrypted under."""
    from backend.services.annotator_tokens import AnnotatorTokens

    return AnnotatorTokens(store=store, settings=settings, open_desk=desk_opener(settings), clock=clock)


def load_encoder(settings: Settings, decoder: Decoder) -> Encoder:
    """The frozen encoders named in the settings; those of images and sound are loaded at the first task with any."""
    from backend.services.task_encoder import TaskEncoder
    from model.encoders.text import TextEncoder, default_path

    name = str(default_path()) if settings.encoder == "minilm" else settings.encoder
    device = device_of(settings)

    def images() -> ImageEncoder:
        from model.encoders.image import ImageEncoder

        return ImageEncoder.load(settings.image_encoder, device=device, decoder=decoder)

    def sounds() -> SoundEncoder:
        from model.encoders.sound import SoundEncoder

        return SoundEncoder.load(settings.sound_encoder, device=device, decoder=decoder)

    return TaskEncoder(
        TextEncoder.load(name, max_tokens=settings.encoder_max_tokens, device=device), reader=media_reader(settings),
        decoder=decoder, images=images, sounds=sounds,
        names="+".join(Path(chosen).name for chosen in (settings.image_encoder, settings.sound_encoder)),
    )


def media_reader(settings: Settings) -> MediaReader:
    """What reads the files that tasks point to, under the limits of the settings."""
    from backend.client import LabelStudioClient
    from backend.media import Fetcher, FileCache, Guard, Limits, MediaReader

    limit = int(settings.media_max_mb * 1e6)
    hosts = [host.strip() for host in settings.media_hosts.split(",") if host.strip()]
    fetcher = Fetcher(
        Guard(label_studio_url=settings.label_studio_url, hosts=hosts, private=settings.media_private),
        limits=Limits(bytes=limit, seconds=settings.media_timeout_s),
        authorization=LabelStudioClient(settings).authorization if settings.label_studio_api_key else None,
    )
    cache = FileCache(settings.data_dir / "media", max_mb=settings.media_cache_mb)
    return MediaReader(fetcher, cache, label_studio_url=settings.label_studio_url, max_bytes=limit)


def device_of(settings: Settings) -> str:
    """"cuda" or "cpu" for `auto`: a GPU is taken when there is one. Asks torch only where a driver is to be seen, since
    that costs seconds and most processes do not need it."""
    if settings.device != "auto":
        return settings.device
    if sys.platform == "linux" and not any(Path(driver).exists() for driver in GPU_DRIVERS):
        return "cpu"
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"
