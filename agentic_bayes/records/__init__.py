"""Records of what the agent did: the conversation model, and reading and writing conversations."""
