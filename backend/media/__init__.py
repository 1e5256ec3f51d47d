"""The files that tasks point to: where they lie, whether they may be read, and reading them within limits."""

from backend.media.cache import FileCache
from backend.media.fetch import Fetcher, Limits
from backend.media.guard import Guard
from backend.media.reader import MediaReader
from backend.media.references import Reference, read_reference

__all__ = ["Fetcher", "FileCache", "Guard", "Limits", "MediaReader", "Reference", "read_reference"]
