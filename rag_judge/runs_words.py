"""The lines of `runs` for people, in English and Chinese. No logic but the choice of words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_judge.checksums import Verified
from rag_judge.pins import Pin, Pinned
from rag_judge.report.terminal import printable
from rag_judge.retention import Fate, Pruned
from rag_judge.run_list import ListedRun, Listing

WORDS = {
    "en": {
        "none": "no runs in {archive}",
        "run": "{run}  {status}{kind}  cases={cases}  judge={judge}{parent}{pin}{pruned}",
        "pairwise": "  comparison",
        "anchors": "  anchors",
        "bridge": "  bridge",
        "regraded": "  regraded from {parent}",
        "bridge_of": "  of {parent}",
        "pin": "  pinned as {role}{note}",
        "note": " ({note})",
        "pruned": "  texts pruned on {day}",
        "broken": "broken: {fault}",
        "gone": "pinned as {role}, but not in the archive: {run}",
        "go_on": "not complete; go on with: rag-judge {command} --resume {path}",
        "pinned": "{run} is pinned as {role}",
        "was": "; it was pinned as {role}",
        "taken_from": "; {run} was it until now, and is pinned no more",
        "unpinned": "{run} is pinned no more; it was pinned as {role}",
        "ok": "{run}  ok: {n} files, {mb:.1f} MB",
        "damaged": "{run}  DAMAGED",
        "pruned_ok": "{run}  texts pruned on {detail}; the other {n} files are ok",
        "unfinished": "{run}  not finished: nothing to hold it against yet",
        "no_checksums": "{run}  cannot be verified: it was written by a version that kept no checksums",
        "unreadable_format": "{run}  cannot be verified: {detail}",
        "problem": "  {kind}: {file}: found {found}, expected {expected}",
        "changed": "changed",
        "missing": "missing",
        "unreadable": "cannot be read",
        "extra": "  not of the run: {file}",
        "verified": "{n} runs: {ok} ok, {damaged} damaged, {other} cannot be verified",
        "prune": "{run}  texts pruned, {mb:.1f} MB",
        "remove": "{run}  removed, {mb:.1f} MB",
        "keep": "{run}  stays: {why}",
        "goes_on": " (going on with what an earlier prune began)",
        "total": "{n} runs pruned, {mb:.1f} MB; {stay} stay as they are",
        "dry_run": "--dry-run: nothing was removed",
        "link": "a link to a folder elsewhere",
        "not_read": "its manifest or a file beside it cannot be read (rag-judge runs verify)",
        "pinned_as": "pinned as {detail}",
        "asked": "the night is held against it",
        "labelled": "people have labelled it",
        "edited_sheet": "a review sheet was changed and not imported (rag-judge review import)",
        "sample": "a review sample was drawn (--unlabelled prunes it where nobody labels)",
        "in_use": "unfinished, and in use",
        "unfinished_young": "unfinished, and younger than the limit",
        "unfinished_old": "unfinished (--whole removes it)",
        "last": "one of the last runs",
        "young": "younger than the limit",
        "needed": "{detail} is held against it or made of it",
        "pruned_before": "its texts were pruned before",
    },
    "zh": {
        "none": "{archive} 中没有运行",
        "run": "{run}  {status}{kind}  cases={cases}  judge={judge}{parent}{pin}{pruned}",
        "pairwise": "  成对比较",
        "anchors": "  锚点",
        "bridge": "  桥接",
        "regraded": "  由 {parent} 重新评分",
        "bridge_of": "  来自 {parent}",
        "pin": "  已固定为 {role}{note}",
        "note": "({note})",
        "pruned": "  正文已于 {day} 清理",
        "broken": "损坏:{fault}",
        "gone": "已固定为 {role},但不在归档中:{run}",
        "go_on": "未完成;继续请运行:rag-judge {command} --resume {path}",
        "pinned": "{run} 已固定为 {role}",
        "was": ";此前固定为 {role}",
        "taken_from": ";此前的 {run} 不再固定",
        "unpinned": "{run} 不再固定;此前固定为 {role}",
        "ok": "{run}  完好:{n} 个文件,{mb:.1f} MB",
        "damaged": "{run}  已损坏",
        "pruned_ok": "{run}  正文已于 {detail} 清理;其余 {n} 个文件完好",
        "unfinished": "{run}  未完成:尚无可核对的内容",
        "no_checksums": "{run}  无法核对:写入它的版本没有保存校验和",
        "unreadable_format": "{run}  无法核对:{detail}",
        "problem": "  {kind}:{file}:发现 {found},应为 {expected}",
        "changed": "已改动",
        "missing": "缺失",
        "unreadable": "无法读取",
        "extra": "  不属于该运行:{file}",
        "verified": "{n} 个运行:{ok} 个完好,{damaged} 个损坏,{other} 个无法核对",
        "prune": "{run}  清理正文,{mb:.1f} MB",
        "remove": "{run}  删除,{mb:.1f} MB",
        "keep": "{run}  保留:{why}",
        "goes_on": "(继续此前未完成的清理)",
        "total": "清理 {n} 个运行,{mb:.1f} MB;{stay} 个保持原样",
        "dry_run": "--dry-run:没有删除任何内容",
        "link": "指向别处文件夹的链接",
        "not_read": "清单或其旁的文件无法读取(rag-judge runs verify)",
        "pinned_as": "已固定为 {detail}",
        "asked": "本次夜间任务以它为对照",
        "labelled": "已有人工标注",
        "edited_sheet": "有改动过但未导入的复核表(rag-judge review import)",
        "sample": "已抽取复核样本(若无人标注,可用 --unlabelled 清理)",
        "in_use": "未完成,正在使用",
        "unfinished_young": "未完成,未到期限",
        "unfinished_old": "未完成(--whole 可删除)",
        "last": "属于最近的若干运行",
        "young": "未到期限",
        "needed": "{detail} 以它为对照或由它生成",
        "pruned_before": "正文此前已清理",
    },
}
# What `Why` is called here where the word alone is taken.
_WHY = {"broken": "not_read", "pinned": "pinned_as", "unfinished": "unfinished_old", "pruned": "pruned_before"}


def list_lines(listing: Listing, archive: Path, lang: str) -> Iterator[str]:
    """A line a run, then what is broken or gone."""
    words = WORDS[lang]
    if not (listing.runs or listing.broken or listing.gone):
        yield words["none"].format(archive=archive)
    for run in listing.runs:
        yield _listed_line(run, words)
    for fault in listing.broken:
        yield words["broken"].format(fault=printable(fault))
    for run_id, one in listing.gone.items():
        yield words["gone"].format(role=one.role, run=printable(run_id))


def _listed_line(run: ListedRun, words: Mapping[str, str]) -> str:
    manifest = run.manifest
    kind = "pairwise" if manifest.get("kind") == "pairwise" else manifest.get("purpose")
    parent = manifest.get("parent")
    made = words["bridge_of" if kind == "bridge" else "regraded"].format(parent=printable(str(parent)))
    return words["run"].format(
        run=printable(str(manifest["run_id"])),
        status=printable(str(manifest["status"])),
        kind=words[kind] if kind in ("pairwise", "anchors", "bridge") else "",
        cases="?" if run.n_cases is None else run.n_cases,
        judge="?" if run.judges is None else printable(run.judges),
        parent=made if parent else "",
        pin=_pin_words(run.pin, words),
        pruned="" if run.pruned_at is None else words["pruned"].format(day=printable(run.pruned_at)),
    )


def _pin_words(pin: Pin | None, words: Mapping[str, str]) -> str:
    if pin is None:
        return ""
    note = words["note"].format(note=printable(pin.note)) if pin.note else ""
    return words["pin"].format(role=pin.role, note=note)


def show_line(manifest: Mapping[str, Any], path: Path, pin: Pin | None, pruned_at: str | None, lang: str) -> str:
    """The first line on one run: its status, where it lies, its pin, and whether its texts are there."""
    words = WORDS[lang]
    pruned = "" if pruned_at is None else words["pruned"].format(day=printable(pruned_at))
    head = f"{printable(str(manifest['run_id']))}  {printable(str(manifest['status']))}  {path}"
    return f"{head}{_pin_words(pin, words)}{pruned}"


def go_on_line(manifest: Mapping[str, Any], path: Path, lang: str) -> str:
    """How to go on with an unfinished run."""
    command = "pairwise" if manifest.get("kind") == "pairwise" else "run"
    return WORDS[lang]["go_on"].format(command=command, path=path)


def pinned_line(pinned: Pinned, lang: str) -> str:
    """What pinning a run has changed."""
    words = WORDS[lang]
    line = words["pinned"].format(run=pinned.run_id, role=pinned.pin.role)
    if pinned.before is not None and pinned.before.role != pinned.pin.role:
        line += words["was"].format(role=pinned.before.role)
    if pinned.taken_from is not None:
        line += words["taken_from"].format(run=printable(pinned.taken_from))
    return line


def unpinned_line(run_id: str, was: Pin, lang: str) -> str:
    """That a run is pinned no more."""
    return WORDS[lang]["unpinned"].format(run=printable(run_id), role=was.role)


def verify_lines(found: Sequence[Verified], lang: str) -> Iterator[str]:
    """A line a run with what is wrong with it below, then how many are as they were."""
    words = WORDS[lang]
    for one in found:
        state = "pruned_ok" if one.state == "pruned" else one.state
        told = {"run": one.run_id, "n": one.n_files, "mb": one.n_bytes / 1e6, "detail": printable(one.detail)}
        yield words[state].format(**told)
        for problem in one.problems:
            parts = {name: printable(getattr(problem, name)) for name in ("file", "found", "expected")}
            yield words["problem"].format(kind=words[problem.kind], **parts)
        for name in one.extra:
            yield words["extra"].format(file=printable(name))
    n_ok, n_damaged = (sum(one.state in states for one in found) for states in (("ok", "pruned"), ("damaged",)))
    yield words["verified"].format(n=len(found), ok=n_ok, damaged=n_damaged, other=len(found) - n_ok - n_damaged)


def prune_lines(pruned: Pruned, lang: str) -> Iterator[str]:
    """A line a run, in the same words whether it was done or would be, then the sum."""
    words = WORDS[lang]
    for fate in pruned.fates:
        yield _fate_line(fate, words)
    stay = len(pruned.fates) - pruned.n_pruned
    yield words["total"].format(n=pruned.n_pruned, mb=pruned.freed_bytes / 1e6, stay=stay)


def _fate_line(fate: Fate, words: Mapping[str, str]) -> str:
    if fate.action == "keep":
        why = words[_WHY.get(fate.why, fate.why)].format(detail=printable(fate.detail))
        return words["keep"].format(run=fate.run_id, why=why)
    line = words[fate.action].format(run=fate.run_id, mb=fate.freed_bytes / 1e6)
    return line + (words["goes_on"] if fate.why == "goes_on" else "")
