"""Rewrites the generated table of docs/label-types.md: every control tag, and what Polyvox does with it.

What is modelled is read from the registry of controls, so the page cannot promise more than there is. A test fails when
it is stale. Usage: python scripts/update_label_types.py [--check]
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
PAGE = ROOT / "docs" / "label-types.md"
BEGIN, END = "<!-- controls:begin -->", "<!-- controls:end -->"
HOW = {
    "choices": "`single`: one class; `multiple`: any set of classes, the empty one too; nested choices by their "
    "paths; ordered (ordinal alpha, mean absolute error) where all classes are numbers or with `ordered=\"true\"`",
    "number": "a distribution over bins: the steps of `min`, `max` and `step` where they are few, else bins of the "
    "votes; the median is predicted, with an 80 % interval; consensus by the votes' median; interval alpha",
    "ranker": "orders; predicted by Plackett-Luce scores of each annotator, alone or beside other controls; consensus "
    "by mean rank, with ties and missing items; Kendall's tau; with buckets compared only",
    "rating": "one of 1 to `maxRating` stars, as ordered classes: ordinal alpha, mean absolute error",
    "pairwise": "left or right",
    "taxonomy": "paths of the tree; one with `maxUsages=\"1\"`, else any set; of a large tree the 256 chosen most",
}
ONLY_PARTLY = {"ranker": ("without buckets", "yes")}  # kind -> (prediction, consensus and agreement)
REGIONS = {
    "Labels": "`agreement --regions`: F1 of spans, equal ones and those that overlap by half",
    "RectangleLabels": "`agreement --regions`: F1 of boxes, turned ones too, with an IoU of a half or more; mean IoU",
    "PolygonLabels": "`agreement --regions`: F1 of outlines with an IoU of a half or more; mean IoU",
}


def table() -> str:
    """A row for each control tag of Label Studio."""
    from backend.labeling.controls import MODELLED
    from backend.labeling.controls.unmodelled import RECOGNISED
    from backend.labeling.regions import KINDS

    lines = ["| Tag | Votes | Prediction | Consensus and agreement | How |", "| --- | --- | --- | --- | --- |"]
    for kind, (tag, _) in sorted(MODELLED.items()):
        predicted, compared = ONLY_PARTLY.get(kind, ("yes", "yes"))
        lines.append(f"| `{tag}` | yes | {predicted} | {compared} | {HOW[kind]} |")
    for tag, does in sorted(RECOGNISED.values()):
        compared = "agreement" if tag in KINDS.values() else "no"
        how = REGIONS[tag] if tag in KINDS.values() else "annotations are kept as they are"
        lines.append(f"| `{tag}` | no | no | {compared} | not yet: it {does}; {how} |")
    return "\n".join(lines)


def main() -> int:
    old = PAGE.read_text(encoding="utf-8")
    before, rest = old.split(BEGIN)
    new = f"{before}{BEGIN}\n{table()}\n{END}{rest.split(END)[1]}"
    if "--check" in sys.argv:
        return int(old != new)
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
