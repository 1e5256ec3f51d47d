"""The ground floor: votes, the spaces of their values, datasets, splits and metrics; without torch."""
