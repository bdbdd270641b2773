"""Problems and conversations made, read, filtered and split."""
