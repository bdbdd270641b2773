"""GRPO-RoC: selection, advantage, loss, trainer."""
