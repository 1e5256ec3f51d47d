"""Talks to Label Studio: `LabelStudioClient` implements `ports.LabelStudio`, `DeskClient` `ports.Desk`."""

from backend.client.desk import DeskClient
from backend.client.label_studio import LabelStudioClient

__all__ = ["DeskClient", "LabelStudioClient"]
