"""Talks to Label Studio: `LabelStudioClient` implements `ports.LabelStudio`."""

from backend.client.label_studio import LabelStudioClient

__all__ = ["LabelStudioClient"]
