"""Addresses of servers: checked, completed, and as they may be written down. Nothing is asked here."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit, urlunsplit

from rag_judge.errors import InputError


def endpoint_url(base_url: str) -> str:
    """The address of chat completions under a base URL; `/v1` is never guessed. Raises InputError without a scheme."""
    parts = _checked(base_url, "base URL")
    path = parts.path.rstrip("/")
    if not path.endswith("/chat/completions"):
        path += "/chat/completions"
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


def public_url(base_url: str) -> str:
    """The base URL as it may be written down: without user, password and query, which may hold keys."""
    return public_address(endpoint_url(base_url)).removesuffix("/chat/completions")


def public_address(url: str) -> str:
    """Any address as it may be written down: without user, password and query."""
    parts = urlsplit(url.strip())
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def checked_address(url: str, what: str) -> str:
    """The address as given. Raises InputError, naming `what`, without scheme or host."""
    _checked(url, what)
    return url.strip()


def is_local(url: str) -> bool:
    """True for this machine's loopback addresses, for which no proxy may be asked."""
    return urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")


def _checked(url: str, what: str) -> SplitResult:
    try:
        parts = urlsplit(url.strip())
        host = parts.hostname or ""
        host.encode("idna")
        blank = any(c.isspace() or not c.isprintable() for c in url.strip())
        valid = parts.scheme in ("http", "https") and bool(host) and parts.port != 0 and not blank
    except ValueError:  # a port that is no number, brackets that do not close, a host that cannot exist
        valid = False
    if not valid:
        raise InputError(f"{what} {_shown(url)!r}: expected http:// or https://, then the host")
    return parts


def _shown(url: str) -> str:
    """The address for a message about it, however broken it is: without what may be a secret."""
    return url.partition("?")[0].rpartition("@")[2]
