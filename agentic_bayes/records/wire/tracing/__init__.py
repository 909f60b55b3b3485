"""What readers of traces share: spans, the messages in them, and how traces become turns and conversations."""
