"""What the plan of a change says to people, in English and Chinese. No number is computed here.

Names of the user's go in as values, and are never read as a template.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from rag_judge.change_facts import ProjectFacts, SetCounts, Spend
from rag_judge.change_plan import ChangePlan, Detectable, LabelsFor, Said, Step
from rag_judge.report.terminal import printable

TITLES: Mapping[str, Mapping[str, str]] = {
    "en": {
        "prompt": "A change of the prompt: the whole set again; retrieval must not move",
        "model": "A change of the answering model: the whole set, and people's labels on the new answers",
        "embedding": "A change of the embedding: retrieval first, then generation",
        "chunking": "A change of the chunking: the ids of the eval set first, then retrieval, then generation",
        "online": "A fault seen in production: the case first, then the mending",
    },
    "zh": {
        "prompt": "改提示词:整个评测集重跑,检索指标不应变动",
        "model": "换回答模型:整个评测集重跑,并对新回答做人工复核",
        "embedding": "换向量模型:先看检索,再看生成",
        "chunking": "改切分:先核对评测集里的 id,再看检索,再看生成",
        "online": "线上出错:先补用例,再修",
    },
}

STEPS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "full_set": "Grade the whole set with the new version: a part of it cannot show what else was broken.",
        "retrieval_held": "Compare. The documents were searched as before, so Hit@k, recall and MRR must not move; if "
        "they do, something else changed, and no difference is this change's.",
        "pairwise": "Let the judge see both answers side by side, in both orders: that finds smaller differences than "
        "two grades do.",
        "gate": "Decide by the red lines and the rules of rag-judge.toml: ship, hold, or not enough evidence.",
        "both_instead": "Or, without a baseline at hand, all of it in one go: both versions asked, graded, shown side "
        "by side, compared and decided.",
        "review_sample": "Have people label a sample of the NEW answers: a judge may be wrong otherwise on another "
        "model's style, and labels of the old answers say nothing of that.",
        "review_import": "Take the sheets in when they come back.",
        "bias": "Hold the judge against the labels: the corrected pass rate is the one to compare where the judge "
        "errs otherwise than before.",
        "retrieval_first": "Ask everything and grade the retrieval alone: no judge call, and no prompt makes good what "
        "was not retrieved.",
        "retrieval_compared": "Compare Hit@k, recall and MRR. Worse here: stop, and mend that first.",
        "then_generation": "Then have the very same answers judged: nothing is asked again, and no answer differs from "
        "the ones above.",
        "compared": "Compare all: other passages may make answers better, or tempt them to say more than stands there.",
        "lint_corpus": "Check the eval set against the new chunks: ids that are gone can never be found, and every one "
        "of them would look like a miss.",
        "map_ids": "By hand: write the new ids into relevant_docs where a case needs one certain chunk. Elsewhere "
        "matching by document, the part of an id before the first #, does.",
        "baseline_by_document": "Count the baseline by document, too, from what it kept; no call is sent.",
        "mine": "Look for the question in the log, as people asked it: it may have been asked in several ways.",
        "write_case": "By hand: complete the case with the right answer (must_include, relevant_docs, expect_refusal, "
        'forbidden_docs). Where it must never come back: "red_line": true. Rules decide red lines, never the judge.',
        "lint_cases": "Check the new case: one that states nothing lets every answer pass.",
        "fails_today": "Ask the version in use. The case must FAIL now: one that passes does not hold the fault. "
        "(Leave --judge none away where no rule can see it.)",
        "add_case": "By hand: add the case to the eval set, for good, and mend the system.",
        "fixed": "Grade the whole set with the mended version: the new case passes, and what passed before still does.",
        "compared_common": "Compare on the questions that both were asked: the set has grown by the new case.",
        "gate_red_lines": "Decide by red lines and floors; from the next pinned baseline on, regressions count, too.",
    },
    "zh": {
        "full_set": "用新版本跑完整个评测集:只跑一部分,看不出别处被改坏了什么。",
        "retrieval_held": "比较。检索没有改,Hit@k、召回与 MRR 不应变动;变了就说明还有别的改动,差异不能归于这次改动。",
        "pairwise": "让评审同时看两个回答(两种顺序):比各打各的分更能看出小差异。",
        "gate": "按红线与 rag-judge.toml 的规则决定:上线、暂缓,或证据不足。",
        "both_instead": "手头没有基线时,也可一步到位:两个版本都提问、评分、并排评审、比较并决定。",
        "review_sample": "请人标注新回答的样本:换了模型,文风变了,评审的错法也可能变;旧回答的标注说明不了这一点。",
        "review_import": "收回复核表后导入。",
        "bias": "用标注检验评审:评审错法变了的话,要比较的是校正后的通过率。",
        "retrieval_first": "先全部提问,只算检索:不调用评审;检索差了,提示词补不回来。",
        "retrieval_compared": "比较 Hit@k、召回与 MRR。这里变差就停下,先修检索。",
        "then_generation": "再对同一批回答做评审:不重新提问,与上面是同样的回答。",
        "compared": "全面比较:换了材料,回答可能更好,也可能多说了材料里没有的话。",
        "lint_corpus": "用新的切块检查评测集:已不存在的 id 永远检索不到,每一个都会被当成漏召。",
        "map_ids": "手工:需要指定某一块的用例,把新 id 写进 relevant_docs。"
        "其余按文档(id 中第一个 # 之前的部分)匹配即可。",
        "baseline_by_document": "基线也按文档重算,只用它保留的内容,不发出任何调用。",
        "mine": "在日志里找出用户的原话:同一个问题可能有多种问法。",
        "write_case": "手工:补全用例的正确答案(must_include、relevant_docs、expect_refusal、forbidden_docs)。"
        '绝不能再犯的,加 "red_line": true。红线由规则判定,不由评审判定。',
        "lint_cases": "检查新用例:什么都没写的用例,任何回答都会通过。",
        "fails_today": "问正在使用的版本。这个用例现在必须失败:能通过就说明它没有抓住这个错误。"
        "(规则看不出的,去掉 --judge none。)",
        "add_case": "手工:把用例永久加进评测集,并修好系统。",
        "fixed": "用修好的版本跑完整个评测集:新用例通过,以前通过的仍然通过。",
        "compared_common": "在两次都问过的问题上比较:评测集多了新用例。",
        "gate_red_lines": "按红线与下限决定;固定新的基线之后,回退规则也算数。",
    },
}

SENTENCES: Mapping[str, Mapping[str, str]] = {
    "en": {
        "no_relevant_docs": "no case has relevant_docs: the {change} change cannot be judged by this set, whatever the "
        "judge says of the answers",
        "retrieval_unseen": "no case has relevant_docs: whether retrieval stayed as it was cannot be seen",
        "too_few_cases": "{n} cases: no difference at all can be shown at the shares above",
        "few_relevant_docs": "{n} of {of} cases have relevant_docs: the retrieval numbers speak of these alone",
        "chunk_ids": "relevant_docs of {n} cases name chunks (an id with #): those ids belong to the old chunking",
        "ids_of_what": "relevant_docs of {n} cases have no #: where these are ids of chunks, matching by document does "
        "not save them; map them anew",
        "no_red_lines": "no case is a red line: no single fault holds this change, only rates do",
        "no_leak_checks": "no case has a tenant or forbidden_docs: a leak cannot be seen",
        "no_refusals": "no case expects a refusal: an answer made up where there is none to give cannot be seen",
        "only_refusals": "every case expects a refusal: nothing is known of answers",
        "states_nothing": "{n} of {of} cases state nothing of the right answer: no rule can decide them",
        "no_judge": "no judge is asked: what no rule states is not seen",
        "same_family": "the judge {judge} is of one family ({family}) with {model} and may favour its own kind: let "
        "people check it, or add a judge of another family",
        "model_unknown": "the new model is not named: add --set model=NAME, and it is checked whether the judge "
        "{judge} is of its family and may favour its own kind",
        "no_baseline": "RUN stands for a finished run of the version in use: no baseline is pinned. `rag-judge runs` "
        "lists what there is; without one, grade the version in use first",
        "other_questions": "the eval set asks other questions than {run} was asked: common ones are compared, and the "
        "gate has red lines and floors alone; a new baseline on today's set would mend that",
        "hidden_endpoint": "URL stands for your endpoint, whose address may hold a key",
        "no_endpoint": "URL stands for the endpoint of the new version (NEW_ANSWERS for a file of its answers): "
        "rag-judge.toml sets none",
        "answers_unknown": "money is not known before the answers are collected; with --answers FILE of an earlier run "
        "it is estimated",
        "run_ids": "ids of runs to come are those of runs begun on {today}; each command prints its own",
        "judge_calls": "judge calls: {least} to {most}{usd}",
        "usd": ", up to {usd:.4f} USD ({price})",
        "labels_step": "labels: about {n} cases",
        "detectable": "The smallest difference that a comparison finds (power 80 %), if the two runs differ on so many "
        "of the cases:",
        "pass": "judge pass, {n} cases: {parts}",
        "rules": "rules, {n} cases: {parts}",
        "retrieval": "Hit@k, {n} cases with relevant_docs: {parts}",
        "part": "on {share:.0%}: {smallest}",
        "from": "{points:.0f} points",
        "none": "none can be seen",
        "labels": "Labels for the corrected pass rate, expected at {rate:.0%} ({source}); about these, fewer "
        "where the judge is good:",
        "of_run": "of {run}",
        "assumed": "assumed: there is no finished run to take it from",
        "label": "±{width:.2f}: {n}{short}; of exactly these cases: {of_set}",
        "short": ", which are more than there are cases: more CASES are needed",
        "set": "The eval set: {n_cases} cases; with relevant_docs {n_relevant_docs}, red lines {n_red_lines}, with a "
        "tenant {n_tenants}, with forbidden_docs {n_forbidden_docs}, to be refused {n_refusals}",
        "gaps": "What it cannot say:",
        "no_gaps": "nothing that was looked for is missing in it",
        "notes": "To be known:",
    },
    "zh": {
        "no_relevant_docs": "没有一条用例写了 relevant_docs:无论评审怎么说,这个评测集都判断不了 {change} 的改动",
        "retrieval_unseen": "没有一条用例写了 relevant_docs:看不出检索是否保持不变",
        "too_few_cases": "只有 {n} 条用例:在上述比例下什么差异也显示不出来",
        "few_relevant_docs": "{of} 条用例中有 {n} 条写了 relevant_docs:检索指标只说明这些用例",
        "chunk_ids": "{n} 条用例的 relevant_docs 写的是切块 id(带 #):这些 id 属于旧的切分",
        "ids_of_what": "{n} 条用例的 relevant_docs 不带 #:若它们是切块 id,按文档匹配也无济于事,需要重新对应",
        "no_red_lines": "没有红线用例:没有哪个单独的错误能拦住这次改动,只有比例能",
        "no_leak_checks": "没有用例写了 tenant 或 forbidden_docs:看不出泄漏",
        "no_refusals": "没有用例期望拒答:资料里没有答案时的编造看不出来",
        "only_refusals": "所有用例都期望拒答:对正常回答一无所知",
        "states_nothing": "{of} 条用例中有 {n} 条没有写明正确答案:规则判定不了",
        "no_judge": "没有评审:规则没有写到的看不出来",
        "same_family": "评审 {judge} 与 {model} 同属一个系列({family}),可能偏袒同类:请人复核,或增加另一系列的评审",
        "model_unknown": "没有写明新模型:加上 --set model=名称,就会检查评审 {judge} 是否与它同系列、可能偏袒同类",
        "no_baseline": "RUN 代表正在使用的版本的一次已完成运行:还没有固定基线。`rag-judge runs` 列出已有的运行;"
        "没有的话,先给正在使用的版本评分",
        "other_questions": "评测集的问题与 {run} 当时不同:只比较共同的问题,门禁只看红线与下限;"
        "用今天的评测集重做基线即可解决",
        "hidden_endpoint": "URL 代表你的端点,其地址中可能含有密钥",
        "no_endpoint": "URL 代表新版本的端点(NEW_ANSWERS 代表它的回答文件):rag-judge.toml 里没有设置",
        "answers_unknown": "收集到回答之前不知道费用;给出以前运行的 --answers 文件即可估算",
        "run_ids": "将来的运行 id 按 {today} 当天开始来写;每条命令会打印自己的 id",
        "judge_calls": "评审调用:{least} 到 {most} 次{usd}",
        "usd": ",最多 {usd:.4f} 美元({price})",
        "labels_step": "人工标注:约 {n} 条",
        "detectable": "比较能发现的最小差异(把握 80 %),视两次运行在多少用例上不同而定:",
        "pass": "评审通过,{n} 条:{parts}",
        "rules": "规则,{n} 条:{parts}",
        "retrieval": "Hit@k,{n} 条写了 relevant_docs:{parts}",
        "part": "{share:.0%} 不同:{smallest}",
        "from": "{points:.0f} 个百分点",
        "none": "看不出差异",
        "labels": "校正通过率所需的标注数,预期通过率 {rate:.0%}({source});约需这么多,评审好则更少:",
        "of_run": "取自 {run}",
        "assumed": "假定值:没有可取的已完成运行",
        "label": "±{width:.2f}:{n} 条{short};只对现有用例而言:{of_set} 条",
        "short": ",超过用例总数:需要更多用例",
        "set": "评测集:{n_cases} 条用例;写了 relevant_docs 的 {n_relevant_docs} 条,红线 {n_red_lines} 条,有 tenant 的 "
        "{n_tenants} 条,有 forbidden_docs 的 {n_forbidden_docs} 条,应拒答的 {n_refusals} 条",
        "gaps": "它说明不了的:",
        "no_gaps": "所查的各项它都具备",
        "notes": "须知:",
    },
}


def change_lines(plan: ChangePlan, facts: ProjectFacts, lang: str) -> list[str]:
    """The plan for people, in the order of doing."""
    words = SENTENCES[lang]
    lines = [TITLES[lang][plan.change], ""]
    for number, step in enumerate(plan.steps, 1):
        lines += _step_lines(number, step, lang)
    lines += ["", words["detectable"], *(f"  {_detectable(one, words)}" for one in plan.detectable)]
    if plan.labels:
        source = words["assumed"] if facts.expected_from is None else words["of_run"].format(run=facts.expected_from)
        lines += [words["labels"].format(rate=facts.expected_rate, source=source)]
        lines += [f"  {_label(one, words)}" for one in plan.labels]
    lines += ["", words["set"].format_map(counts_tree(facts.counts))]
    lines += [words["gaps"]] if plan.gaps else [words["no_gaps"]]
    lines += [f"  - {sentence(said, lang)}" for said in plan.gaps]
    return [*lines, words["notes"], *(f"  - {sentence(said, lang)}" for said in plan.remarks)]


def change_tree(plan: ChangePlan, facts: ProjectFacts, lang: str) -> dict[str, Any]:
    """The plan for machines: `--json`."""
    return {
        "change": plan.change,
        "baseline": facts.baseline,
        "steps": [
            {
                "step": step.code,
                "why": STEPS[lang][step.code],
                "command": command_line(step) if step.command else None,
                "judge_calls": None if step.calls is None else [step.calls.calls_at_least, step.calls.calls_at_most],
                "usd_at_most": None if step.calls is None else step.calls.usd_at_most,
                "labels": step.labels,
            }
            for step in plan.steps
        ],
        "detectable": [
            {
                "what": one.what,
                "n": one.n,
                "differences": [{"discordant_share": share, "smallest": least} for share, least in one.smallest],
            }
            for one in plan.detectable
        ],
        "expected_pass_rate": facts.expected_rate,
        "expected_from": facts.expected_from,
        "labels": [
            {"half_width": one.half_width, "n": one.n, "n_this_set": one.n_this_set, "cases_suffice": one.cases_suffice}
            for one in plan.labels
        ],
        "set": counts_tree(facts.counts),
        "gaps": [{"gap": said.code, "text": sentence(said, lang)} for said in plan.gaps],
        "remarks": [{"remark": said.code, "text": sentence(said, lang)} for said in plan.remarks],
    }


def command_line(step: Step) -> str:
    """What to type for a step."""
    return shlex.join(("rag-judge", *step.command))


def counts_tree(counts: SetCounts) -> dict[str, int]:
    """The counts of an eval set, by name."""
    return {name: getattr(counts, name) for name in counts.__dataclass_fields__}


def sentence(said: Said, lang: str) -> str:
    """A gap or a remark in words."""
    values = {name: printable(value) if isinstance(value, str) else value for name, value in said.values.items()}
    return SENTENCES[lang][said.code].format_map(values)


def _step_lines(number: int, step: Step, lang: str) -> Iterator[str]:
    words = SENTENCES[lang]
    yield f"{number}. {STEPS[lang][step.code]}"
    if step.command:
        yield f"   {''.join(c if c.isprintable() else ' ' for c in command_line(step))}"
    if step.calls is not None:
        yield f"   {_spend(step.calls, words)}"
    if step.labels is not None:
        yield f"   {words['labels_step'].format(n=step.labels)}"


def _spend(spend: Spend, words: Mapping[str, str]) -> str:
    usd = "" if spend.usd_at_most is None else words["usd"].format(usd=spend.usd_at_most, price=spend.price)
    return words["judge_calls"].format(least=spend.calls_at_least, most=spend.calls_at_most, usd=usd)


def _detectable(one: Detectable, words: Mapping[str, str]) -> str:
    parts = [
        words["part"].format(
            share=share,
            smallest=words["none"] if smallest is None else words["from"].format(points=100 * smallest),
        )
        for share, smallest in one.smallest
    ]
    return words[one.what].format(n=one.n, parts="; ".join(parts))


def _label(one: LabelsFor, words: Mapping[str, str]) -> str:
    short = "" if one.cases_suffice else words["short"]
    return words["label"].format(width=one.half_width, n=one.n, short=short, of_set=one.n_this_set)
