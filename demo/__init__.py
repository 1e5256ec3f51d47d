"""The demo: one command that shows Polyvox at work in a real Label Studio, with simulated annotators.

`processes` and `label_studio` start and drive real servers; the end-to-end tests use them too.
"""
