"""Quality of tasks and annotators, from votes: scores, faults, agreement. numpy and scipy only."""
