"""How a case comes to its stage, and what has to happen afterwards."""
