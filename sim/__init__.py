"""Economics: the protocol's agents simulated over its own mechanism, in integer token units."""
