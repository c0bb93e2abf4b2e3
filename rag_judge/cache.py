"""Replies of earlier runs, by the hash of all that determined them: one SQLite file that processes share.

Only replies in which a verdict could be read are kept. The key holds what really was sent (effective parameters
included), the case, the repeat, the order and the variant: no reply of one repeat ever answers another, and a cut or
refused reply is never replayed. What a server accepts (its dialect) is kept beside them, so that a known server is not
probed again.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from rag_judge.dialect import Dialect, as_sent
from rag_judge.judge import ModelServer, Probed
from rag_judge.records import Call, CallFailure, Reply, Usage
from rag_judge.token_counts import TokenCount

_T = TypeVar("_T")
BUSY_S = 5.0  # as long another process may hold the file
PRUNE_EVERY = 200  # replies written between two looks at the size
DAY_S = 86_400.0
FORMAT = 1  # of the rows; a file of another format is begun anew
# What a file that is broken, or of another program, may raise: its replies are then asked for again.
UNUSABLE = (sqlite3.Error, KeyError, TypeError, ValueError)
_TABLES = """
CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, at REAL NOT NULL, size INTEGER NOT NULL, reply TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS replies_at ON replies (at);
CREATE TABLE IF NOT EXISTS servers (server TEXT, model TEXT, at REAL NOT NULL, learned TEXT NOT NULL,
    PRIMARY KEY (server, model));
"""


def reply_key(server: str, call: Call, body: Mapping[str, Any]) -> str:
    """The hash of all that determines a reply: server, the request as it really goes out, case, repeat, order, variant.

    The order of keys does not matter, nor does any secret: keys and query strings are not part of it.
    """
    determining = {
        "server": server,
        "case_id": call.case_id,
        "repeat": call.repeat,
        "order": call.order,
        "variant": call.variant,
        "body": body,
    }
    if call.answer_no:
        determining["answer_no"] = call.answer_no
    return hashlib.sha256(json.dumps(determining, sort_keys=True).encode()).hexdigest()


class ReplyCache:
    """The file. Every method is a whole transaction; two processes may use it at once."""

    def __init__(self, path: Path, *, max_days: float, max_mb: float, clock: Callable[[], float]) -> None:
        """Open or create the file; `clock` gives seconds since 1970. Raises sqlite3.Error for a file that is none."""
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        (path.parent / ".gitignore").write_text("*\n", encoding="utf-8")  # replies quote what users asked
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        self._clock = clock
        self._max_age_s = max_days * DAY_S
        self._max_bytes = max_mb * 1_000_000
        self._n_written = 0
        self._database = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
        try:
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=NORMAL")
            if self._database.execute("PRAGMA user_version").fetchone()[0] not in (0, FORMAT):
                self._database.executescript("DROP TABLE IF EXISTS replies; DROP TABLE IF EXISTS servers;")
            self._database.executescript(_TABLES)
            self._database.execute(f"PRAGMA user_version = {FORMAT}")
            self._prune()
        except sqlite3.Error:
            self._database.close()
            raise

    def get(self, key: str) -> Reply | None:
        """The kept reply, marked as cached; None without one, or where it is too old."""
        oldest = self._clock() - self._max_age_s
        with closing(
            self._database.execute("SELECT reply FROM replies WHERE key = ? AND at >= ?", (key, oldest))
        ) as rows:
            found = rows.fetchone()
        if found is None:
            return None
        kept = json.loads(found[0])
        return Reply(**{**kept, "usage": Usage(**kept["usage"]), "latency_s": 0.0, "attempts": 0, "cached": True})

    def put(self, key: str, reply: Reply) -> None:
        """Keep a reply; an older one of the same key is replaced."""
        text = json.dumps(asdict(reply))
        with closing(
            self._database.execute(
                "INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?)", (key, self._clock(), len(text), text)
            )
        ):
            self._n_written += 1
        if self._n_written % PRUNE_EVERY == 0:
            self._prune()

    def learned(self, server: str, model: str) -> tuple[Dialect, Probed] | None:
        """What is known of a server; None where nothing is, or where it is too old."""
        oldest = self._clock() - self._max_age_s
        query = "SELECT learned FROM servers WHERE server = ? AND model = ? AND at >= ?"
        with closing(self._database.execute(query, (server, model, oldest))) as rows:
            found = rows.fetchone()
        if found is None:
            return None
        kept = json.loads(found[0])
        tokens = kept["probed"]["tokens"]
        return (
            Dialect(**{**kept["dialect"], "dropped": frozenset(kept["dialect"]["dropped"])}),
            Probed(kept["probed"]["schema_obeyed"], TokenCount(**tokens) if tokens else None, Usage(None, None)),
        )

    def keep_learned(self, server: str, model: str, dialect: Dialect, probed: Probed) -> None:
        """Remember what a server accepts."""
        known = {"dialect": {**asdict(dialect), "dropped": sorted(dialect.dropped)}, "probed": asdict(probed)}
        row = (server, model, self._clock(), json.dumps(known))
        with closing(self._database.execute("INSERT OR REPLACE INTO servers VALUES (?, ?, ?, ?)", row)):
            return

    def _prune(self) -> None:
        """Drop what is too old, then the oldest until the rest fits."""
        with closing(self._database.execute("DELETE FROM replies WHERE at < ?", (self._clock() - self._max_age_s,))):
            pass
        with closing(self._database.execute("SELECT COALESCE(SUM(size), 0) FROM replies")) as rows:
            excess = rows.fetchone()[0] - self._max_bytes
        if excess <= 0:
            return
        doomed = """DELETE FROM replies WHERE key IN (SELECT key FROM (SELECT key, SUM(size) OVER (ORDER BY at, key)
            - size AS before FROM replies) WHERE before < ?)"""
        with closing(self._database.execute(doomed, (excess,))):
            return

    def close(self) -> None:
        """Release the file."""
        self._database.close()


class CachedJudge:
    """A model server whose readable replies are kept, and asked only for those that are not.

    A cache that turns out broken is said once and left alone from then on: it costs replies, never a run.
    """

    def __init__(
        self,
        judge: ModelServer,
        cache: ReplyCache,
        server_name: str,
        is_readable: Callable[[Call, Reply], bool],
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        """`server_name` is how the server stands in keys; `is_readable` says whether a verdict stands in a reply."""
        self._say = say
        self._is_broken = False
        self._judge = judge
        self._cache = cache
        self._server_name = server_name
        self._is_readable = is_readable

    async def ask(self, call: Call) -> Reply | CallFailure:
        """The kept reply to a call, or the server's. Raises CannotGoOn as the server does."""
        found = await self.kept(call)
        if found is not None:
            return found
        dialect = self._judge.dialect
        result = await self._judge.ask(call)
        if self._judge.dialect != dialect:
            self._remember()
        if isinstance(result, Reply) and result.cut is None and self._is_readable(call, result):
            self._keep(call, result)
        return result

    async def is_alive(self, call: Call) -> bool:
        """Whether the server still answers."""
        return await self._judge.is_alive(call)

    async def kept(self, call: Call) -> Reply | None:
        """The kept reply to just this request; None without one."""
        await self._learned(call)
        key = reply_key(self._server_name, call, self._judge.body(call))
        return self._tried(lambda: self._cache.get(key))

    def _keep(self, call: Call, reply: Reply) -> None:
        body = self._judge.body(call)
        # Another call may have changed what is sent meanwhile: then the key of this reply is not known any more.
        if as_sent(body, call, self._judge.server.body) == dict(reply.sent):
            key = reply_key(self._server_name, call, body)
            self._tried(lambda: self._cache.put(key, reply))

    async def _learned(self, call: Call) -> None:
        """What the server accepts, from the cache or else from a probe."""
        if self._judge.probed is not None:
            return
        known = self._tried(lambda: self._cache.learned(self._server_name, self._judge.server.model))
        if known is not None:
            self._judge.dialect, self._judge.probed = known
            self._judge.has_replied = True  # in an earlier run
            return
        await self._judge.learn(call)
        self._remember()

    def _remember(self) -> None:
        dialect, probed = self._judge.dialect, self._judge.probed
        if probed is not None:
            model = self._judge.server.model
            self._tried(lambda: self._cache.keep_learned(self._server_name, model, dialect, probed))

    def _tried(self, act: Callable[[], _T]) -> _T | None:
        """What the cache gives; None, and said once, when it is broken."""
        if self._is_broken:
            return None
        try:
            return act()
        except UNUSABLE as error:
            self._is_broken = True
            self._say(f"warning: the cache is broken ({error!r}) and is left alone from here on; delete its file")
            return None
