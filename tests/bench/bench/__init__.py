"""What `tests/bench/run` is made of. Only Python's own library."""
