"""The accelerate loop that sft and rl share."""
