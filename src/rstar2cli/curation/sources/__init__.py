"""Where problems come from, one file each."""
