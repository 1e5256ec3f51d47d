"""What bad neighbours may do to Polyvox: a table of findings, each with the tests that hold it, made into docs."""
