"""From conversations to fixed-length shards."""
