"""What every room stands on: errors, configuration, seeds, progress, the process environment."""
