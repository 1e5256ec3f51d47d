"""Why each annotator is expected to say what they say: one task in detail, and words over many tasks."""
