"""Episodes of model and tool, and the scheduler that runs many."""
