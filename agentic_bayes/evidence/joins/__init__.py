"""Join reference answers and expected tool calls from tables to conversations."""
