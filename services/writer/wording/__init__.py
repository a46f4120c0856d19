"""The lesson in words, by rules: what failed, where and why."""
