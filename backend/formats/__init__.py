"""Data sets of votes in files and folders: streaming readers and writers for every format, found by content."""

from backend.formats.dataset import Dataset, ReadOptions, WriteOptions
from backend.formats.detect import detect
from backend.formats.errors import FormatError
from backend.formats.registry import WHAT, open_dataset, open_votes, save_dataset

__all__ = [
    "WHAT", "Dataset", "FormatError", "ReadOptions", "WriteOptions", "detect", "open_dataset", "open_votes",
    "save_dataset",
]
