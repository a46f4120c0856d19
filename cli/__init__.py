"""The `lorebus` command: the top floor of the tree, which nothing imports."""
