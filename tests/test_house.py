"""The house as a whole: imports point one way, help is light, nothing private stands in the sources."""

import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "rag_judge"

# The order in which to read the modules, in which data flows, and against which no import may point. A package
# stands after its own modules; `cli` imports what a command needs when it runs, and still only what stands above.
READING_ORDER = [
    "errors",
    "addresses",
    "records",
    "gold",
    "text",
    "rows",
    "cases",
    "corpus",
    "answers",
    "retrieval",
    "sections",
    "settings",
    "families",
    "endpoint",
    "refusal_wordings",
    "refusals",
    "rules",
    "numerals",
    "quantities",
    "claims",
    "prompt_settings",
    "prompts",
    "responses",
    "token_counts",
    "dialect",
    "money",
    "pace",
    "judge",
    "cache",
    "journal",
    "calls",
    "repair",
    "verdicts",
    "prose",
    "votes",
    "grading",
    "passages",
    "attribution",
    "counterfactual",
    "outcomes",
    "estimates",
    "agreement",
    "poststratification",
    "planning",
    "calibration",
    "prediction_powered",
    "sampling",
    "paired",
    "judge_effects",
    "clusters",
    "injection",
    "table",
    "summary",
    "likeness",
    "log_times",
    "production_log",
    "masking",
    "lint_words",
    "lint_cases",
    "lint_corpus",
    "lint",
    "panel",
    "pairs",
    "run_format",
    "archive",
    "checksums",
    "pins",
    "retention",
    "run_list",
    "night_lock",
    "manifest",
    "formats.found",
    "formats.source",
    "formats.shapes",
    "formats.mapping",
    "formats.spans",
    "formats.otlp",
    "formats.openinference",
    "formats.genai",
    "formats.langsmith",
    "formats.langfuse",
    "formats.ragas",
    "formats.deepeval",
    "formats.promptfoo",
    "formats.trec",
    "formats.plain",
    "formats.citations",
    "formats.detect",
    "formats.importing",
    "formats.exporting",
    "formats",
    "engines.local_model",
    "engines",
    "review.labels",
    "review.sheet",
    "review.instructions",
    "review.cells",
    "review.csv_sheet",
    "review.xlsx",
    "review.label_studio",
    "review.html_words",
    "review.html_sheet",
    "review.writing",
    "review.found",
    "review.matching",
    "review.reading",
    "review.design",
    "review.label_file",
    "annotators",
    "bias",
    "pair_bias",
    "judge_comparison",
    "comparison",
    "anchor_rule",
    "anchor_words",
    "anchor_judges",
    "anchors",
    "nights",
    "trend_values",
    "trend_marks",
    "trend",
    "trend_output",
    "gate",
    "change_facts",
    "change_plan",
    "review",
    "report.html_words",
    "report.html_glossary",
    "report.html_terms",
    "report.sentences",
    "report.terminal",
    "nightly_words",
    "report.html_numbers",
    "report.html_facts",
    "comparison_words",
    "gate_reasons",
    "gate_output",
    "change_words",
    "report.joined_words",
    "report.joined",
    "report.joined_comparison",
    "report.joined_people",
    "report.trend_words",
    "report.trend_table",
    "report.trend_plot",
    "report.hints",
    "report.html",
    "report.markdown",
    "report.pairs_words",
    "report.pairs_html",
    "report",
    "notify_words",
    "notify_messages",
    "notify",
    "log_words",
    "signals",
    "mining",
    "demo.rag_service",
    "demo.story",
    "demo",
    "pipeline.steps",
    "pipeline.judging",
    "pipeline.probing",
    "pipeline.run",
    "pipeline.pairwise",
    "pipeline.regrade",
    "pipeline.review",
    "pipeline.review_status",
    "pipeline.bias",
    "pipeline.compare",
    "pipeline.anchors",
    "pipeline.bridge",
    "pipeline.trend",
    "pipeline.report",
    "pipeline.gate",
    "pipeline.ab",
    "pipeline.night",
    "pipeline.nightly",
    "pipeline.collect",
    "pipeline.plan",
    "pipeline.change_plan",
    "pipeline.demo",
    "pipeline.project",
    "pipeline",
    "progress",
    "options",
    "printing",
    "plan_command",
    "archive_commands",
    "runs_words",
    "runs_commands",
    "import_command",
    "lint_command",
    "log_commands",
    "review_words",
    "gate_command",
    "report_command",
    "ab_command",
    "trend_command",
    "compare_command",
    "bridge_words",
    "bridge_command",
    "nightly_command",
    "review_commands",
    "quick_start",
    "cli",
]


# They import what a command needs when it runs, so that --help is quick.
COMMAND_MODULES = (
    "cli",
    "bridge_command",
    "archive_commands",
    "runs_commands",
    "compare_command",
    "gate_command",
    "report_command",
    "ab_command",
    "import_command",
    "lint_command",
    "log_commands",
    "plan_command",
    "review_commands",
    "trend_command",
    "nightly_command",
    "printing",
)


def modules() -> dict[str, Path]:
    found = {}
    for path in PACKAGE.rglob("*.py"):
        name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix("__init__").rstrip(".")
        if name:
            found[name] = path
    return found


def own_imports(path: Path, names: set[str]) -> set[str]:
    """Our modules that a module imports, anywhere in it, under TYPE_CHECKING too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            targets = [f"{node.module}.{alias.name}" for alias in node.names] + [node.module or ""]
        else:
            continue
        for target in targets:
            name = target.removeprefix("rag_judge.")
            while name and name not in names:
                name = name.rpartition(".")[0]
            if target.startswith("rag_judge") and name:
                found.add(name)
    return found


def test_every_module_stands_in_the_reading_order() -> None:
    assert sorted(modules()) == sorted(READING_ORDER)


def test_no_import_points_down_the_reading_order() -> None:
    place = {name: i for i, name in enumerate(READING_ORDER)}
    names = set(place)
    down = [
        f"{name} imports {other}"
        for name, path in modules().items()
        for other in own_imports(path, names) - {name}
        if place[other] > place[name] and not name.startswith(f"{other}.")
    ]
    assert down == []


def test_only_the_command_line_imports_our_own_modules_late() -> None:
    late = [
        f"{name}:{node.lineno}"
        for name, path in modules().items()
        if name not in COMMAND_MODULES
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rag_judge")
    ]
    assert late == []


def test_help_loads_none_of_the_heavy_libraries() -> None:
    heavy = ("pandas", "scipy", "openai", "aiohttp", "pyarrow", "numpy", "pydantic", "jinja2", "rich", "asyncio")
    code = (
        "import sys; sys.argv = ['rag-judge', '--help']\n"
        "from rag_judge.cli import app\n"
        "try: app()\nexcept SystemExit: pass\n"
        f"print([name for name in {heavy!r} if name in sys.modules], file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stderr.strip() == "[]"
    assert "Usage: rag-judge" in ended.stdout


def test_no_file_names_a_package_registry_or_a_place_of_one_machine() -> None:
    hosts = [r"\b" + host.replace("!", r"\.") + r"\b" for host in ("pypi!org", "pythonhosted!org", "npmjs!org")]
    places = [rf"(?<![\w.:/}}-])/{top}/" for top in ("work", "farm", "root")]
    forbidden = re.compile("|".join(hosts + places))
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = []
    for name in filter(None, listed.split("\0")):
        path = ROOT / name
        if path.is_file() and path.suffix not in (".png", ".parquet"):
            found += [f"{name}: {hit.group()}" for hit in [forbidden.search(path.read_text("utf-8", "replace"))] if hit]
    assert found == []
