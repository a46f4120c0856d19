"""reembedder: embeds all memories with another model, beside the one that serves, and cuts over when it is complete.

consumes embedding.changed · asks gate.screen, the embedding model · writes memory_vectors, embedding_models,
reembed_jobs, reembed_passed, inbox, outbox, dead_letters, audit (its administration)
"""
