"""Which vote is worth asking for next, and where no further vote is needed. numpy only; see `base` and `registry`."""
