"""How a case reaches its stage, and what must happen afterwards."""
