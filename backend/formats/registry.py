"""All formats by name, with how they are read and written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from backend.formats.dataset import Dataset, ReadOptions, WriteOptions
from backend.formats.detect import detect
from backend.formats.errors import FormatError
from backend.formats.tidy import tidied
from model.data.votes import Votes
from model.errors import ModelError


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One format; the functions are imported when they are first needed, since Arrow takes a moment to load."""

    name: str
    what: str  # one line for people
    read: Callable[[Path, ReadOptions], Dataset]
    write: Callable[[Dataset, Path, WriteOptions], None]


def _peerannot() -> Format:
    from backend.formats import peerannot

    return Format(name="peerannot", what=WHAT["peerannot"], read=peerannot.read, write=peerannot.write)


def _folder() -> Format:
    from backend.formats import folder

    return Format(name="folder", what=WHAT["folder"], read=folder.read, write=folder.write)


def _csv() -> Format:
    from backend.formats import table, table_writer

    return Format(name="csv", what=WHAT["csv"], read=table.read_delimited, write=table_writer.write_csv)


def _tsv() -> Format:
    from backend.formats import table, table_writer

    return Format(name="tsv", what=WHAT["tsv"], read=table.read_delimited, write=table_writer.write_tsv)


def _parquet() -> Format:
    from backend.formats import table, table_writer

    return Format(name="parquet", what=WHAT["parquet"], read=table.read_parquet, write=table_writer.write_parquet)


def _label_studio() -> Format:
    from backend.formats import label_studio, label_studio_writer

    return Format(name="label-studio", what=WHAT["label-studio"], read=label_studio.read,
                  write=label_studio_writer.write_json)


def _label_studio_min() -> Format:
    from backend.formats import label_studio_flat, label_studio_writer

    return Format(name="label-studio-min", what=WHAT["label-studio-min"], read=label_studio_flat.read_min,
                  write=label_studio_writer.write_min)


def _label_studio_csv() -> Format:
    from backend.formats import label_studio_flat, label_studio_writer

    return Format(name="label-studio-csv", what=WHAT["label-studio-csv"], read=label_studio_flat.read_csv,
                  write=label_studio_writer.write_csv)


WHAT: dict[str, str] = {
    "peerannot": "folder with answers.json and metadata.json, as peerannot has it",
    "folder": "folder with tasks.jsonl, annotations.jsonl and meta.json",
    "csv": "comma-separated table task,annotator,label",
    "tsv": "the same, tab-separated",
    "parquet": "the same as Parquet",
    "label-studio": "Label Studio's JSON export",
    "label-studio-min": "Label Studio's JSON-MIN export",
    "label-studio-csv": "Label Studio's CSV or TSV export",
}
_LOADERS: dict[str, Callable[[], Format]] = {
    "peerannot": _peerannot, "folder": _folder, "csv": _csv, "tsv": _tsv, "parquet": _parquet,
    "label-studio": _label_studio, "label-studio-min": _label_studio_min, "label-studio-csv": _label_studio_csv,
}


def format_named(name: str) -> Format:
    """A format by its name. Raises FormatError with the names there are."""
    load = _LOADERS.get(name)
    if load is None:
        raise FormatError(f"There is no format {name}; there is {', '.join(_LOADERS)}.")
    return load()


def open_dataset(path: Path | str, format: str | None = None, options: ReadOptions | None = None) -> Dataset:
    """Read a data set; its format is found by its content unless it is given. Raises FormatError."""
    where = Path(path)
    if format is not None and not where.exists():
        raise FormatError(f"There is no file or folder {where}.")
    chosen = format_named(format or detect(where))
    try:
        return tidied(chosen.read(where, options or ReadOptions()))
    except ModelError as error:
        raise FormatError(f"{where.name}: {error}.") from error
    except FileNotFoundError as error:
        raise FormatError(f"{where.name} is not of the format {chosen.name}: a file is missing.") from error


def open_votes(path: Path | str, format: str | None = None, options: ReadOptions | None = None) -> Votes:
    """The votes alone; see `open_dataset`."""
    return open_dataset(path, format, options).votes


def save_dataset(dataset: Dataset, path: Path | str, format: str, options: WriteOptions | None = None) -> None:
    """Write a data set in a format, whole or not at all. Raises FormatError for what the format cannot hold."""
    try:
        format_named(format).write(dataset, Path(path), options or WriteOptions())
    except ModelError as error:
        raise FormatError(f"The data set cannot be written as {format}: {error}.") from error
