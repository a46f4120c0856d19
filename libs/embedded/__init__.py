"""Postgres and nats-server as child processes, so that one machine needs no other installation.

`stack.EmbeddedStack` is the way in; `postgres.EmbeddedPostgres` and `nats_server.EmbeddedNats` are its halves.
"""
