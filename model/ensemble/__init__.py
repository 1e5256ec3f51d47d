"""Several learners stacked: see `ladder`."""
