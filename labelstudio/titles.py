"""What a prediction is called above Label Studio's editor, in words for the annotator. Pure: no Django, no requests.

    "annotator:7@r12" -> "For you, r12" for annotator 7, "Ada Lovelace, r12" for everybody else who may see it
    "consensus@r12"   -> "Consensus, r12"

Label Studio's editor shows `model_version` there, and shortens what is longer than 15 characters. Only the answer that
the editor reads is rewritten: what is stored, what API tokens get and the ids by which annotations name the prediction
that they started from stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from labelstudio.choice import ANNOTATOR_PREFIX, CONSENSUS, own_name, parse_version


def title(version: str, annotator: str, names: Mapping[str, str]) -> str:
    """What `annotator` reads in place of `version`; `names`: annotator id -> name, as far as it is known."""
    parsed = parse_version(version)
    if parsed is None:
        return version  # another tool's
    name, number = parsed
    if name == CONSENSUS:
        return f"Consensus, r{number}"
    if name == own_name(annotator):
        return f"For you, r{number}"
    return f"{names.get(name.removeprefix(ANNOTATOR_PREFIX), 'Another annotator')}, r{number}"


def others(versions: Iterable[str], annotator: str) -> set[int]:
    """Label Studio's ids of the other annotators of whom there is a prediction."""
    named = {parsed[0].removeprefix(ANNOTATOR_PREFIX) for version in versions
             if (parsed := parse_version(version)) and parsed[0] not in (CONSENSUS, own_name(annotator))}
    return {int(each) for each in named if each.isascii() and each.isdigit() and len(each) <= 9}  # of an integer column
