"""Why each annotator is expected to say what they say: one task in detail, and words over many tasks."""

from backend.services.explanation.service import Explanations

__all__ = ["Explanations"]
