"""Learners: one for each kind of answer; `base` is their contract, `registry` lists them."""
