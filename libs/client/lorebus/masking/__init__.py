"""Credentials out of texts, before they leave the process.

`values` asks whether a string is a secret, `shapes` knows credentials by their look, `places` where they are
written, `texts` masks. The expressions are plain data that RE2 and Python's `re` read alike: a client, whose texts are
its own and short, compiles them with `re`, while services compile them with RE2, whose time is in proportion to the
text however hostile it is.
"""
