"""What the agent did: conversations, read and written."""
