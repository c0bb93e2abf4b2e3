"""A user's own project folder: laid once, never overwritten."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rag_judge.errors import InputError
from rag_judge.prompts import shipped_folder


def init(target: Path) -> tuple[list[Path], list[Path]]:
    """Lay prompts, example eval set, archive folder, settings and schedules of the nightly job into a folder.

    Returns the files written and those that were there and stayed as they were. Raises InputError for a folder that
    cannot be written.
    """
    written, kept = [], []
    try:
        for path, content in _files():
            place = target / path
            if place.exists():
                kept.append(place)
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
            written.append(place)
    except OSError as error:
        raise InputError(f"{target}: cannot be written: {error.strerror}") from error
    return written, kept


def _files() -> Iterator[tuple[Path, bytes]]:
    for name in ("judge_prompts", "eval"):
        source = shipped_folder(name)
        for path in sorted(source.rglob("*")):
            if path.is_file() and not path.name.startswith("."):
                yield Path(name) / path.relative_to(source), path.read_bytes()
    yield Path("runs") / ".gitkeep", b""
    templates = Path(__file__).parent / "templates"
    yield Path("rag-judge.toml"), (templates / "rag-judge.toml").read_bytes()
    yield Path(".github") / "workflows" / "rag-judge.yml", (templates / "rag-judge.yml").read_bytes()
    for path in sorted((templates / "schedules").iterdir()):
        yield Path("schedules") / path.name, path.read_bytes()
