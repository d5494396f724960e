"""Programs that make runs: what the package and a release contain besides the sources."""
