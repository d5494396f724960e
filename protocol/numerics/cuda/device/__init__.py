"""Triton code; `launch.start` runs it. Nothing else imports it, because importing it imports Triton."""
