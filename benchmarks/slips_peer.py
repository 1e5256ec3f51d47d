"""cleanlab's label-quality scores for the votes of one project; runs in the peers' environment.

    python -m benchmarks.slips_peer < votes.npz > scores.json

In: unit, annotator, label (N,), and out-of-sample probabilities of our own model, `own` (N, C) of each vote's annotator
and `unit_p` (U, C), the mean over the annotators of a unit. Out: for each vote how suspicious cleanlab finds it, by its
method for several annotators and by its score of single labels; higher is worse.
"""

from __future__ import annotations

import io
import json
import sys

import numpy as np


def main() -> int:
    from cleanlab.multiannotator import get_label_quality_multiannotator
    from cleanlab.rank import get_label_quality_scores

    with np.load(io.BytesIO(sys.stdin.buffer.read()), allow_pickle=False) as given:
        unit, annotator, label = given["unit"], given["annotator"], given["label"]
        own, unit_p = given["own"], given["unit_p"]
    table = np.full((len(unit_p), int(annotator.max()) + 1), np.nan)
    table[unit, annotator] = label
    found = get_label_quality_multiannotator(table, unit_p, verbose=False)
    several = 1.0 - found["detailed_label_quality"].to_numpy()[unit, annotator]
    single = {f"single labels, {way}": (1.0 - get_label_quality_scores(label, own, method=way)).tolist()
              for way in ("self_confidence", "normalized_margin")}
    print(json.dumps({"several annotators": several.tolist(), **single}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
