"""Evaluation of a model on problem sets."""
