"""What tools print when they fail, read by one small module a tool family: lines of a log in, a finding or None out."""
