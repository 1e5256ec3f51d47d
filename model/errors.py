"""What `model` raises.

Everything derives from `ModelError`, which is a `ValueError`: the caller handed in something unusable.
"""


class ModelError(ValueError):
    """The input cannot be learned from or predicted on; the message says what and where."""


class CheckpointError(ModelError):
    """A checkpoint is missing, damaged or was written by an incompatible version."""


class NotEnoughVotes(ModelError):
    """Too few votes (or fewer than two classes) to fit anything."""


class ContentError(ModelError):
    """One piece of content (an image, a recording) cannot be read; the sentence says why and carries none of it."""
