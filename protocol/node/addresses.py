"""What of an address may be printed: providers of nodes write their customers' keys into paths, queries and users."""

from __future__ import annotations

from urllib.parse import urlsplit

HIDDEN = "…"


def public_part(url: str) -> str:
    """Scheme, host and port of a URL; what else there is becomes "…"."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return HIDDEN
    host = parts.netloc.rpartition("@")[2]
    if not parts.scheme or not host:
        return HIDDEN
    shown = f"{parts.scheme}://{host}"
    return shown if url.rstrip("/") == shown else f"{shown}/{HIDDEN}"
