"""What runs on the other side of the wall: standard library only, started with an empty environment."""
