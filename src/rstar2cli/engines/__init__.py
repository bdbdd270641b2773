"""Generation engines behind one protocol (:mod:`rstar2cli.engines.base`)."""
