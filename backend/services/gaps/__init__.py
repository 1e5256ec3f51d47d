"""Gaps of the annotation matrix: the document that says how they are filled and which are worth asking for."""
