"""Scenes: each brings a case to its stage, and checks what must happen afterwards."""
