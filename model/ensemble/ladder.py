"""The face of the ensemble: fit a ladder of base models, judge it, predict with it.

    fitted = fit(TrainingSet(...), LadderConfig.preset("polyvox"), previous=published)
    verdict = judge(fitted, published, data, config)
    fitted.ladder.predict(tokens, ["3", "7"])["politeness"].served  # (B, 2, C)

Base models: `prior` (an annotator's label frequencies), `pooled` (content, with a bias per annotator), `network`
(QuMAB). They are stacked by log-loss on votes that they were not trained on; `served` is the calibrated mixture. Where
others have voted on a unit, `conditioned` (QuMAB that reads their votes), `others` (Dawid-Skene from their votes) and
`factors` (latent factors, from the same) join in.
"""

from model.config import LadderConfig, NetworkConfig
from model.data.dataset import TrainingSet
from model.data.judgement import Judgement
from model.ensemble.control import ControlPrediction
from model.ensemble.fitting import Fit, Progress, fit
from model.ensemble.gate import judge
from model.ensemble.predictor import Ladder

__all__ = [
    "ControlPrediction",
    "Fit",
    "Judgement",
    "Ladder",
    "LadderConfig",
    "NetworkConfig",
    "Progress",
    "TrainingSet",
    "fit",
    "judge",
]
