"""Records drawn for people: transcripts, comparisons, plots, tables."""
