"""All policies by name, and what is recommended."""

from __future__ import annotations

from model.acquisition.base import AcquisitionError, Policy
from model.acquisition.diverse import DiverseBatch
from model.acquisition.policies import Bald, Disagreement, ExpectedChange, Random, Uncertainty

POLICIES: dict[str, type[Policy]] = {
    policy.name: policy for policy in (ExpectedChange, Uncertainty, Disagreement, Bald, DiverseBatch, Random)
}
RECOMMENDED = ExpectedChange.name
RECOMMENDED_BALANCE = 0.5  # at most twice an equal share: the best of five on real development sets


def make_policy(name: str, **settings: object) -> Policy:
    """A policy by name, with its settings. Raises AcquisitionError for an unknown name or setting."""
    policy = POLICIES.get(name)
    if policy is None:
        raise AcquisitionError(f"no policy is called {name!r}; there are {', '.join(POLICIES)}")
    try:
        return policy(**settings)
    except TypeError as error:
        raise AcquisitionError(f"{name} has no such setting: {', '.join(sorted(settings))}") from error
