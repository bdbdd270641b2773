"""The command line: lazy registry, shared options, errors to exit codes, one thin file a command."""
