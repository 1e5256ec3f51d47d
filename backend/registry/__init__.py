"""Published checkpoints: files in a folder, one pointer a project in the store, loaded ladders in memory."""

from backend.registry.registry import Loaded, Registry

__all__ = ["Loaded", "Registry"]
