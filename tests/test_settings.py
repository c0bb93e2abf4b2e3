"""Settings: which of flag, environment, file and default wins, and how a wrong one is said."""

from pathlib import Path
from typing import Any

import pytest

from rag_judge.errors import InputError
from rag_judge.manifest import saved_settings
from rag_judge.sections import PLACES
from rag_judge.settings import (
    Settings,
    changed_settings,
    load_settings,
    resumed_settings,
    unknown_variables,
)


def loaded(folder: Path, text: str = "", environment: dict[str, str] | None = None, **flags: Any) -> Settings:
    (folder / "rag-judge.toml").write_text(text, encoding="utf-8")
    return load_settings(None, environment or {}, flags, folder)


def test_a_flag_wins_over_the_environment_over_the_file_over_the_default(tmp_path: Path) -> None:
    text = "[run]\nk = 7\nseed = 7\nname = 'file'\n"
    found = loaded(tmp_path, text, {"RAG_JUDGE_K": "8", "RAG_JUDGE_SEED": "8"}, k=9)
    assert (found.run.k, found.run.seed, found.run.name, found.run.out) == (9, 8, "file", "runs")


def test_without_a_file_there_are_defaults_and_a_named_file_must_exist(tmp_path: Path) -> None:
    assert load_settings(None, {}, {}, tmp_path) == Settings()
    with pytest.raises(InputError, match=r"nowhere\.toml: cannot be read"):
        load_settings(tmp_path / "nowhere.toml", {}, {})


def test_the_openai_address_is_used_where_no_other_is_set(tmp_path: Path) -> None:
    environment = {"OPENAI_BASE_URL": "http://env/v1"}
    assert loaded(tmp_path, "", environment).judge.base_url == "http://env/v1"
    assert loaded(tmp_path, "", environment, base_url="http://flag/v1").judge.base_url == "http://flag/v1"
    assert loaded(tmp_path, "[judge]\nbase_url = 'http://file/v1'", environment).judge.base_url == "http://file/v1"


@pytest.mark.parametrize(
    ("text", "environment", "flags", "message"),
    [
        ("[run]\nk = 0", {}, {}, r"rag-judge\.toml: run\.k: found 0, expected at least 1"),
        ("[run]\nk = 'many'", {}, {}, r"rag-judge\.toml: run\.k: found 'many'"),
        ("[run]\nkk = 1", {}, {}, r"run\.kk: unknown setting; \[run\] has: name, out, k"),
        ("[runn]\nk = 1", {}, {}, r"unknown section or value 'runn'"),
        ("k = 1", {}, {}, r"unknown section or value 'k'"),
        ("[run", {}, {}, "not valid TOML"),
        ("", {"RAG_JUDGE_REPEATS": "0"}, {}, "RAG_JUDGE_REPEATS: found 0, expected at least 1"),
        ("", {}, {"lang": "fr"}, "--lang: found 'fr'"),
        ("", {}, {"match": "fuzzy"}, "--match: found 'fuzzy'"),
        ("", {}, {"judge_sample": -1}, "--judge-sample: found -1, expected at least 1"),
        ("", {}, {"timeout_s": float("nan")}, "--timeout-s: found nan"),
        ("", {}, {"timeout_s": float("inf")}, "--timeout-s: found a number above"),
        ("", {}, {"k": 10**30}, "--k: found a number above"),
        ("[run]\nk = true", {}, {}, r"run\.k: found True, expected no flag"),
        ("[run]\nmax_unscored = 5", {}, {}, r"run\.max_unscored: found a number above 1"),
        ("[judge.prices.m]\nprompt = nan\ncompletion = 1", {}, {}, r"judge.prices.m: found .*nan"),
        ("[judge.body]\nmodel = 'z'", {}, {}, r"judge\.body: model is set by rag-judge itself"),
        ("[system]\na = nan", {}, {}, r"system\.a: found nan"),
        ("[system]\nb = 2020-01-01", {}, {}, r"system\.b: found datetime"),
        ("", {}, {"out": " "}, "--out: found blank text, expected a folder"),
    ],
)
def test_a_wrong_setting_names_its_place_what_was_found_and_what_was_expected(
    tmp_path: Path, text: str, environment: dict[str, str], flags: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        loaded(tmp_path, text, environment, **flags)


def test_every_flag_has_a_place_in_the_settings() -> None:
    for section, name in PLACES.values():
        assert hasattr(getattr(Settings(), section), name)


def test_settings_kept_by_a_run_come_back_equal(tmp_path: Path) -> None:
    text = "[endpoint]\nurl = 'http://x/'\nheaders = {A = '${B}'}\n[endpoint.response]\nanswer = 'a'\n[system]\nv = 2\n"
    found = loaded(tmp_path, text, k=3)
    assert changed_settings(saved_settings(found), {}) == found


def test_a_resume_may_be_more_patient_and_nothing_else(tmp_path: Path) -> None:
    saved = saved_settings(loaded(tmp_path, k=3, system={"v": 2}))
    patient = resumed_settings(
        saved, {"timeout_s": 9.0, "k": 3, "system": {"v": 2}, "lang": "zh"}, Settings(), "runs/x"
    )
    assert (patient.judge.timeout_s, patient.run.lang, patient.run.k) == (9.0, "zh", 3)
    for flags in ({"k": 4}, {"model": "m"}, {"early_stop": False}, {"system": {"v": 3}}):
        with pytest.raises(InputError, match=r"but runs/x was begun with"):
            resumed_settings(saved, flags, Settings(), "runs/x")


def test_no_secret_of_an_address_or_header_is_kept_and_a_resume_finds_it_in_todays_settings(tmp_path: Path) -> None:
    text = "[endpoint]\nurl = 'http://u:pw@x/ask?key=s3cret'\nheaders = {A = 's3cret', B = '${B}'}\n"
    found = loaded(tmp_path, text, base_url="http://y/v1?key=s3cret")
    saved = saved_settings(found)
    assert "s3cret" not in str(saved)
    assert "pw" not in str(saved["endpoint"]["url"])
    assert resumed_settings(saved, {"base_url": "http://y/v1?key=s3cret"}, found, "runs/x") == found
    assert resumed_settings(saved, {}, Settings(), "runs/x").judge.base_url == "http://y/v1"


def test_a_key_in_the_place_of_its_variables_name_is_refused_and_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected the name of an environment variable") as caught:
        loaded(tmp_path, "[judge]\napi_key_env = 'sk-secret-123'")
    assert "sk-secret" not in str(caught.value)


def test_a_misspelt_variable_is_named_and_one_that_the_settings_use_is_not(tmp_path: Path) -> None:
    text = "[judge]\napi_key_env = 'RAG_JUDGE_KEY'\n[endpoint]\nheaders = {A = 'Bearer ${RAG_JUDGE_TOKEN}'}\n"
    given = dict.fromkeys(("RAG_JUDGE_REPEAT", "RAG_JUDGE_K", "RAG_JUDGE_KEY", "RAG_JUDGE_TOKEN", "HOME"), "5")
    assert unknown_variables(given, loaded(tmp_path, text)) == ["RAG_JUDGE_REPEAT"]


def test_settings_of_an_older_version_have_todays_defaults_for_what_they_lack() -> None:
    from rag_judge.settings import Settings, changed_settings, resumed_settings

    old = {"run": {"k": 3}, "judge": {"model": "m"}, "endpoint": {}, "system": {}}
    assert changed_settings(old, {}).gate == Settings().gate
    resumed = resumed_settings(old, {"k": 3, "match": "exact", "deadline": "1h"}, Settings(), "runs/x")
    assert (resumed.run.k, resumed.run.probe, resumed.judge.deadline) == (3, False, "1h")
