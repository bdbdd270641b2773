"""rstar2: agentic reinforcement learning of math reasoners, as composable commands."""

__version__ = "0.1.0"
