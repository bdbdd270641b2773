"""Files of records: the shard contract, streams, DuckDB views."""
