"""Our webhook of a project in Label Studio: registered where we know our address, and everything about it checked."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from backend.errors import LabelStudioError
from backend.ports import Clock, LabelStudio, Store
from backend.records import Project
from backend.services import webhook_check, webhook_lease
from backend.services.identity import held
from backend.services.webhook_check import SECRET_HEADER
from backend.settings import Settings

logger = logging.getLogger(__name__)
Hooks = Sequence[Mapping[str, Any]]


class Webhooks:
    """Webhooks of all projects; one project at a time."""

    def __init__(self, *, store: Store, label_studio: LabelStudio, settings: Settings, clock: Clock) -> None:
        self._store = store
        self._label_studio = label_studio
        self._settings = settings
        self._clock = clock

    @property
    def _address(self) -> str:
        return f"{self._settings.url}/webhook"

    def settle(self, project: Project) -> None:
        """Register ours, unless this Polyvox is a copy, and keep what is wrong for the status page.

        Raises LabelStudioError when Label Studio is away.
        """
        hooks = self._hooks(project)
        if hooks is not None:
            self._look_for_twins(project, hooks)
        if held(self._store.instance):
            self._store.projects.set_findings(project.key, webhook_check.CHECK, [])  # what it would advise is not ours
            return
        refused = self._register(project) if self._settings.url else None
        self._check(project, hooks if not self._settings.url else self._hooks(project), refused)

    def _hooks(self, project: Project) -> Hooks | None:
        """All webhooks of the project; None where the token may not look."""
        try:
            return self._label_studio.webhooks(project.label_studio_id)
        except LabelStudioError as error:
            if error.http_status != 403:
                raise
            logger.info("the token may not look at webhooks, so they are not checked")
            return None

    def _look_for_twins(self, project: Project, hooks: Hooks) -> None:
        instance = self._store.instance.get()
        found = webhook_lease.contender(
            hooks, instance=instance.id, known=self._store.instance.mark(project.key), ours=self._address
        )
        if found is not None and not instance.contested:
            address = webhook_check.address(str(found.get("url"))).removesuffix(webhook_check.ROUTE)
            logger.warning("another Polyvox with our id wrote the webhook %s of project %s", address, project.key)
            self._store.instance.contest(address)

    def _register(self, project: Project) -> int | None:
        """Make our webhook what it should be, with the secret that we want to see and a mark.

        Returns the HTTP status with which Label Studio refused it; None when it is there.
        """
        instance, known = self._store.instance.get(), self._store.instance.mark(project.key)
        mark = webhook_lease.next_mark(known, self._clock())
        headers = {webhook_lease.HEADER: str(webhook_lease.Holder(instance.id, mark))}
        if self._settings.webhook_secret:
            headers[SECRET_HEADER] = self._settings.webhook_secret
        if known is None or known.offered != mark:
            self._store.instance.offer_mark(project.key, mark)
        try:
            self._label_studio.register_webhook(project.label_studio_id, self._address, headers)
        except LabelStudioError as error:
            if error.retry or error.http_status == 401:
                raise
            # Label Studio refuses private addresses unless it is told otherwise; without events, walks still work.
            logger.warning("Label Studio did not take the webhook of project %s: %s", project.key, error)
            return error.http_status or 400
        if known is None or known.mark != mark:
            self._store.instance.settle_mark(project.key)
        return None

    def _check(self, project: Project, hooks: Hooks | None, refused: int | None) -> None:
        """Keep what is wrong with webhooks and backends."""
        if hooks is None:
            return
        try:
            backends = self._label_studio.ml_backends(project.label_studio_id)
        except LabelStudioError as error:
            if error.http_status != 403:
                raise
            logger.info("the token may not look at models, so webhooks are not checked")
            return
        seen = webhook_check.Seen(
            webhooks=hooks, backends=backends, url=self._settings.url, secret=self._settings.webhook_secret,
            refused=refused, reconcile_every_s=self._settings.reconcile_every_s,
            instance=self._store.instance.get().id,
        )
        self._store.projects.set_findings(project.key, webhook_check.CHECK, webhook_check.problems(seen))
