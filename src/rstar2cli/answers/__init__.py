"""Answers as values: extraction, normal forms, equivalence. Pure functions."""
