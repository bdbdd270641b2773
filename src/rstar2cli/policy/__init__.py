"""A language model as numbers: load, packing, log-probs, checkpoints, digests."""
