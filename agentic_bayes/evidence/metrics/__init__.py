"""Metrics of single interactions (traces), by a model or by embeddings, and of whole conversations (sessions)."""
