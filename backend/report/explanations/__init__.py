"""Explanations for people: words on a coloured ground, heat over pictures, bars over time, annotators side by side."""
