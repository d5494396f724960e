"""Programs as data: instructions, their bytes, checking, running, tracing (encoding.md sections 3 to 5)."""
