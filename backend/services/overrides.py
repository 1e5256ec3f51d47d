"""A project's own settings on top of those of the service."""

from __future__ import annotations

import logging

from backend.errors import SettingsError
from backend.records import Project
from backend.settings import Settings

log = logging.getLogger(__name__)


def settings_of(settings: Settings, project: Project) -> Settings:
    """The settings that hold for a project. Overrides that make no sense are ignored with a warning."""
    if not project.settings:
        return settings
    try:
        return settings.for_project(project.settings)
    except SettingsError as error:
        log.warning("the settings of project %s are ignored: %s", project.key, error)
        return settings
