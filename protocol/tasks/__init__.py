"""Tasks: their terms, their amounts of money, and the bundles that hold their programs and data."""
