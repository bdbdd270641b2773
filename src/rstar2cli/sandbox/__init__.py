"""Running untrusted Python outside this process, with limits and typed outcomes."""
