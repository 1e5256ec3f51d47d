"""How well predictions do: splits that never leak, metrics per annotator, paired intervals. No torch."""
