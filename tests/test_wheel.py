"""The wheel, installed in a clean environment elsewhere, carries the prompts and the example and works."""

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of an environment in which the wheel is installed, and its libraries from this one."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    python = folder / "venv" / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", str(wheel)]
    subprocess.run(install, check=True)
    # The libraries are those of this environment; the package itself comes from the wheel, which stands before them.
    ask = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    site = subprocess.run(ask, check=True, capture_output=True, text=True).stdout.strip()
    (Path(site) / "libraries.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    return python.parent


def rag_judge(installed: Path, cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    plain = {
        name: value for name, value in os.environ.items() if not name.startswith(("RAG_JUDGE_", "OPENAI_", "PYTHON"))
    }
    return subprocess.run(
        [str(installed / "rag-judge"), *arguments], cwd=cwd, env=plain, capture_output=True, text=True, check=False
    )


def test_the_package_comes_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    code = "import rag_judge; print(rag_judge.__file__)"
    where = subprocess.run(
        [str(installed / "python"), "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    assert str(installed.parent) in where
    assert str(ROOT) not in where


def test_a_project_is_laid_and_the_demo_graded_far_from_the_checkout(installed: Path, tmp_path: Path) -> None:
    laid = rag_judge(installed, tmp_path, "init", ".")
    assert laid.returncode == 0, laid.stderr
    for name in ("judge_prompts/passfail/zh.j2", "eval/rag_cases.json", "rag-judge.toml"):
        assert (tmp_path / name).read_bytes() == (
            (ROOT / name) if name != "rag-judge.toml" else ROOT / "rag_judge/pipeline/templates/rag-judge.toml"
        ).read_bytes()
    demo = rag_judge(installed, tmp_path, "demo", "--no-judge", "--json")
    assert demo.returncode == 0, demo.stderr
    assert json.loads(demo.stdout)["summary"]["n_answered"] >= 24
    assert (tmp_path / "runs").is_dir()


def test_the_shipped_prompts_are_found_without_a_project_folder(installed: Path, tmp_path: Path) -> None:
    rows = '{"id": "a", "question": "q?", "answer": "x", "contexts": ["x"]}\n'
    (tmp_path / "both.jsonl").write_text(rows, encoding="utf-8")
    planned = rag_judge(installed, tmp_path, "plan", "--cases", "both.jsonl")
    assert planned.returncode == 0, planned.stderr
    assert "judge calls: 2 to 3" in planned.stdout
