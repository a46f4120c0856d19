"""Channel memory: what a chat's assistant and its people said, from a message to a stored memory.

turns, ingest      `memory.write` of kinds channel_turn and channel_messages
directory, editing `channel.register`, `channel.set`, `channel.show`, `channel.edit`
ambient, flagging  `channel.ambient`, `channel.flagged`
"""
