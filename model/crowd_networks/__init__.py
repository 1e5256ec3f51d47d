"""Classifiers learned from crowds: cached features in, the true label out, without any gold label.

Either votes are aggregated first and the classifier learns the result, or classifier and annotators are learned
together (CrowdLayer, CoNAL). numpy and torch; `model.crowd`, whose aggregates are used, stays free of torch.
"""

from model.crowd_networks.learn import METHODS, CrowdClassifier, TrainingConfig, learn

__all__ = ["METHODS", "CrowdClassifier", "TrainingConfig", "learn"]
