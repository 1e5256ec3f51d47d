"""Templates -> HTML: one Jinja environment for the pages of the site and for the report file.

Everything is escaped unless a chart made it; a name that a template misspells is an error and not an empty place.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from backend.report import charts, words
from backend.report.calibration import calibration
from backend.report.links import with_query

FOLDER = Path(__file__).parents[1] / "templates"
STATIC = Path(__file__).parents[1] / "static"


def environment() -> Environment:
    """A new environment; it compiles each template once, so keep it."""
    made = Environment(
        loader=FileSystemLoader(FOLDER), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, auto_reload=False,
    )
    made.filters.update(
        number=words.number, decimal=words.decimal, evidence=words.evidence, percent=words.percent,
        seconds=words.seconds, moment=words.moment, day=words.day, cell=cell, time=time, short=words.shortened,
        breaking=breaking,
    )
    made.globals["say_calibration"] = calibration
    made.globals.update(charts=charts, count=words.count, with_query=with_query, DASH=words.DASH)
    return made


def cell(value: Any, kind: str) -> str:
    """A value as its column's kind wants it."""
    if value is None or value == "":
        return words.DASH
    match kind:
        case "percent":
            return words.percent(value)
        case "whole":
            return words.number(value)
        case "decimal":
            return words.decimal(value)
        case "seconds":
            return words.seconds(value)
        case "time":
            return words.day(datetime.fromisoformat(value))
        case _:
            return str(value)


def breaking(name: str) -> Markup:
    """A name whose line may end after the at sign, so that no letter of an address stands alone on the next one."""
    return Markup("@<wbr>").join(name.split("@"))


def time(value: datetime, *, only_day: bool = False) -> Markup:
    """A <time> that programs can read."""
    shown = words.day(value) if only_day else words.moment(value)
    return Markup('<time datetime="{}">{}</time>').format(value.isoformat(), shown)


def inline_style() -> Markup:
    """The style sheet of the site, for a file that stands alone."""
    text = (STATIC / "site.css").read_text(encoding="utf-8")
    assert "</" not in text, "a style sheet cannot close its own element"
    return Markup(text)
