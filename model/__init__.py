"""Learning and statistics of Polyvox: numpy and torch only.

Knows no HTTP, no database, no Label Studio JSON and no environment variable. Importing this package loads no torch.
"""
