"""From a model's text and a gold answer to a verdict and a reward: the only way to a reward."""
