"""Results that other tools wrote: one module per tool, found by content."""
