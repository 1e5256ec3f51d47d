"""Base models: one file for each way to answer; `base` is their contract, `registry` lists them."""
