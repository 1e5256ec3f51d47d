"""The query network of QuMAB (AAAI 2026): one learnable query for each annotator, reading frozen tokens."""
