"""Benchmarks: each prints its baseline beside ours from the same run and can write its figures as JSON."""
