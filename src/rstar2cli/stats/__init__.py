"""One implementation of each statistic."""
