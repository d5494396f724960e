"""Stage 1: what the submitter passes to `capture`, examined and never changed."""
