"""Programs that make runs: what the package and a release hold besides the sources."""
