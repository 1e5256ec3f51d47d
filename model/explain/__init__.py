"""What annotators' queries look at, whether that matters for the answer, and whether people agree."""
