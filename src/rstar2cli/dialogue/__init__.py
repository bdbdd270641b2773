"""The one template, tool-call parser and token bookkeeping for rollout, SFT, eval and show."""
