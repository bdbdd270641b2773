"""The built-in generator: families of verifiable integer-answer problems."""
