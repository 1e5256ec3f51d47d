"""Label Studio's labeling configuration and annotations <-> spaces, typed values and predictions."""

from backend.labeling.annotations import read_task
from backend.labeling.config import LabelConfig, parse_config
from backend.labeling.control_arm import in_control_arm, task_in_control_arm
from backend.labeling.controls import Control, Unmodelled
from backend.labeling.objects import ObjectTag

__all__ = [
    "Control",
    "LabelConfig",
    "ObjectTag",
    "Unmodelled",
    "in_control_arm",
    "parse_config",
    "read_task",
    "task_in_control_arm",
]
