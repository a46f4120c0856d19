"""The domain: pure values and decisions. Nothing here reads, writes, logs or asks the clock."""
