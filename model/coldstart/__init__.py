"""Cold start: what is served to an annotator of whom a version knows next to nothing yet."""
