"""What each number, column and cause of `report.html` means, in English and Chinese. No number and no markup here.

`METRICS`: name → (label, one sentence on what it says and does not). `CAUSES`: name → (label, what went wrong, where
to mend it).
"""

from __future__ import annotations

from collections.abc import Mapping

METRICS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "en": {
        "end_to_end.correct": (
            "End to end correct",
            "Share of cases that broke no rule and, where a judge was asked, passed it; a case without an answer "
            "counts as wrong, and the judge's own errors are still in it.",
        ),
        "retrieval.hit": (
            "Hit@{k}",
            "Share of questions with at least one relevant document among the first {k}; it does not say whether "
            "all that is needed came.",
        ),
        "retrieval.recall": (
            "Recall@{k}",
            "Mean share of a question's relevant documents found among the first {k}; only documents that the eval "
            "set names count as relevant.",
        ),
        "retrieval.mrr": (
            "MRR",
            "Mean of 1/rank of the first relevant document, 0 beyond rank {k}; it looks at that first one alone.",
        ),
        "retrieval.ndcg": (
            "nDCG@{k}",
            "How near the first {k} come to the best possible order, grades of relevance counted; it does not say "
            "whether the answer made use of them.",
        ),
        "retrieval.precision": (
            "Precision@{k}",
            "Mean share of the first {k} places that hold a relevant document; it stays low by nature where a "
            "question has fewer than {k}.",
        ),
        "people.corrected": (
            "Pass rate, corrected by people",
            "The rate that people would give, by their labels and the judge's verdicts; nothing is assumed of it.",
        ),
        "people.human_rate": (
            "Pass rate of the labelled cases",
            "What people passed of the sample, weighted by how it was drawn; no use is made of the judge.",
        ),
        "people.bias": (
            "Judge minus people",
            "Above 0 the judge is too lenient, below too strict; near 0 errors may cancel, see the next two.",
        ),
        "people.false_pass": (
            "Passes that people fail",
            "Share of all cases that the judge passes and people would fail.",
        ),
        "people.false_fail": (
            "Fails that people pass",
            "Share of all cases that the judge fails and people would pass.",
        ),
        "people.agreement": (
            "Agreement with people",
            "Share of the cases on which judge and people say the same; where nearly all pass, chance agrees often.",
        ),
        "people.kappa": (
            "Kappa",
            "Agreement beyond chance, 0 to 1; small where nearly everything passes, then read AC1 beside it.",
        ),
        "people.ac1": (
            "AC1",
            "Agreement beyond chance that does not fall apart where nearly everything passes.",
        ),
        "people.sensitivity": (
            "Of what people pass, the judge passes",
            "Weighted by how the sample was drawn.",
        ),
        "people.specificity": (
            "Of what people fail, the judge fails",
            "Weighted by how the sample was drawn; with few failed cases it is hardly known.",
        ),
        "answers.declined": (
            "Declined",
            "Share of answers that decline and say nothing after it; whether that was right, only an eval set knows.",
        ),
        "answers.no_context": (
            "Nothing retrieved",
            "Share of answers that came with an empty list of contexts; an answer without that field is not counted.",
        ),
        "answers.unsupported_figures": (
            "A figure in no context",
            "Share of answers with a number, date or amount that no context holds; a sum or a difference is one, too. "
            "Only of cases that state no expectation.",
        ),
        "answers.lexical_support": (
            "Words found in the contexts",
            "Mean share of an answer's words that its contexts hold; other words for the same thing lower it.",
        ),
        "answers.suspicious": (
            "Answers that speak to the judge",
            "They hold a verdict in JSON, a mark that ends their section, or an order to the judge. Look at them: "
            "a judge may obey, and no grade was changed.",
        ),
        "rules.correct": (
            "All rules kept",
            "Share of answers that meet everything their case states; it sees only what the case states, not what "
            "else the answer says.",
        ),
        "rules.must_include": (
            "All key points said",
            "Share of answers that hold every required key point; another wording of the same point is missed.",
        ),
        "rules.acceptable": (
            "Acceptable wording said",
            "Share of answers in scope that hold one of the acceptable wordings; another right wording is missed.",
        ),
        "rules.must_not_include": (
            "Nothing forbidden said",
            "Share of answers free of the forbidden wordings; it does not look at what a wording means.",
        ),
        "rules.faithful": (
            "Key points supported by contexts",
            "Share of answers whose stated key points all stand in the contexts; the rest of what an answer says is "
            "not looked at.",
        ),
        "rules.refusal": (
            "Refusals right",
            "Share of answers that declined exactly where the case says so, read from the wording; whether a given "
            "answer is right does not matter here.",
        ),
        "rules.leaks": (
            "Leaks",
            "Cases that were shown or cited a forbidden document or another tenant's, over cases that name one; "
            "a single leak is a defect, however low the share.",
        ),
        "rules.citations": (
            "Dangling citations",
            "Citations that point at nothing retrieved, over all citations; it does not say whether the others "
            "support what they stand beside.",
        ),
        "judge.pass": (
            "Pass rate, not corrected",
            "Share of graded answers that the judge passes; where the judge errs, so does this.",
        ),
        "judge.grounded": (
            "Grounded",
            "Share of answers whose every claim the judge finds in the contexts; that the contexts are true is "
            "taken for granted.",
        ),
        "judge.complete": (
            "Complete",
            "Share of answers that the judge finds to say all that the question needs; it does not say that they "
            "are right.",
        ),
        "judge.should_abstain": (
            "Contexts insufficient",
            "Share of cases whose contexts, says the judge, do not hold what is needed; it speaks of retrieval, not "
            "of whether the answer declined.",
        ),
        "judge.fabrication": (
            "Fabrication rate",
            "Share of graded answers that did not decline and claim something the judge finds in no context; such "
            "a claim may still be true.",
        ),
        "judge.correctness": (
            "Grounded among those that answered",
            "Share of answers that did not decline whose claims the judge finds in the contexts; refusals are left "
            "out.",
        ),
        "judge.score.mean": (
            "Mean score",
            "Mean of the decided scores; how good a 4 is only people's labels can tell.",
        ),
        "judge.undecided": (
            "Undecided",
            "Cases whose repeats leave pass or fail open; they count neither as passed nor as failed.",
        ),
        "judge.unscored": (
            "Unscored",
            "Cases of which no reply of the judge could be read; they count neither as passed nor as failed.",
        ),
        "judge.flip_rate": (
            "Flip rate",
            "Share of cases whose first two verdicts differ; at temperature 0 a server may simply repeat itself, so "
            "a low rate shows neither that the judge is sure nor that it is right.",
        ),
        "judge.alike": (
            "First two replies alike",
            "Share of cases whose first two replies are word for word the same: near 100 %, the server repeats itself, "
            "and the flip rate says nothing of the judge's doubts.",
        ),
        "judge.unstable_share": (
            "Unstable",
            "Share of cases of which any two verdicts differ; asking stops early, so not every case was asked as "
            "often.",
        ),
        "judge.expectation_conflict": (
            "Judge against eval set",
            "Cases where the judge holds the contexts insufficient and the eval set expects an answer, or the other "
            "way round; either of the two may be wrong.",
        ),
    },
    "zh": {
        "end_to_end.correct": (
            "端到端正确率",
            "没有违反规则、且（若用了评审）评审判为通过的用例占比；无回答算错，评审自身的误差仍包含在内。",
        ),
        "retrieval.hit": ("Hit@{k}", "前 {k} 条里至少有一篇相关文档的问题占比；不说明所需内容是否齐全。"),
        "retrieval.recall": ("Recall@{k}", "相关文档出现在前 {k} 条里的平均比例；只有评测集标出的才算相关文档。"),
        "retrieval.mrr": ("MRR", "首个相关文档名次的倒数的平均值，排在 {k} 名以外记 0；只看首个，不看其余。"),
        "retrieval.ndcg": ("nDCG@{k}", "前 {k} 条与最佳排序的接近程度，计入相关等级；不说明回答是否用上了它们。"),
        "retrieval.precision": ("Precision@{k}", "前 {k} 个位置中相关文档的平均占比；相关文档不足 {k} 篇时自然偏低。"),
        "people.corrected": (
            "经人工校正的通过率",
            "人会给出的通过率：由标注与评审结论合起来估计，不对评审作任何假设。",
        ),
        "people.human_rate": (
            "已标注用例的通过率",
            "按抽样方式加权；没有用到评审。",
        ),
        "people.bias": (
            "评审减去人",
            "大于 0 评审偏松，小于 0 偏严；接近 0 时两种错误可能相互抵消，看下面两项。",
        ),
        "people.false_pass": (
            "评审通过而人不通过",
            "占全部用例的比例。",
        ),
        "people.false_fail": (
            "评审不通过而人通过",
            "占全部用例的比例。",
        ),
        "people.agreement": (
            "与人一致",
            "评审与人说法相同的比例；几乎全部通过时，碰巧一致也很多。",
        ),
        "people.kappa": (
            "Kappa",
            "扣除碰巧之后的一致程度；几乎全部通过时会偏小，请同时看 AC1。",
        ),
        "people.ac1": (
            "AC1",
            "扣除碰巧之后的一致程度，几乎全部通过时也稳得住。",
        ),
        "people.sensitivity": (
            "人通过的，评审通过",
            "按抽样方式加权。",
        ),
        "people.specificity": (
            "人不通过的，评审不通过",
            "按抽样方式加权；不通过的用例少时几乎无从得知。",
        ),
        "answers.declined": ("拒答", "明确拒答且之后没有作答的回答所占比例；拒得对不对，要有评测集才知道。"),
        "answers.no_context": ("什么都没检索到", "检索结果为空列表的回答所占比例；没有该字段的回答不计。"),
        "answers.unsupported_figures": (
            "有数字不在资料中",
            "回答里有数字、日期或金额不在任何一段资料中的比例；相加相减得出的数也算。只统计没有写明预期的用例。",
        ),
        "answers.lexical_support": ("用词见于资料", "回答的用词在资料中出现的平均比例；换一种说法会使它变低。"),
        "answers.suspicious": (
            "像是说给裁判听的回答",
            "回答里有 JSON 评分、结束标记或对裁判的指令。请看一看：裁判可能照做；评分未因此改动。",
        ),
        "rules.correct": ("规则全部满足", "满足用例全部要求的回答占比；只看用例写明的要求，不看回答的其余内容。"),
        "rules.must_include": ("要点齐全", "包含全部必备要点的回答占比；同一要点换了说法会被漏认。"),
        "rules.acceptable": ("说法可接受", "范围内用例中含有任一可接受说法的回答占比；其他正确说法会被漏认。"),
        "rules.must_not_include": ("没有禁用说法", "不含禁用说法的回答占比；只比对字面，不理解含义。"),
        "rules.faithful": ("生成忠实度", "所述要点全部能在检索结果中找到的回答占比；要点以外的内容不在检查之列。"),
        "rules.refusal": ("拒答正确率", "该拒则拒、该答则答的占比，依据回答的措辞判断；答得对不对不在此列。"),
        "rules.leaks": (
            "越权泄漏",
            "看到或引用了禁用文档或其他租户文档的用例数，除以注明了这类限制的用例数；只要有一条就是缺陷，与比例高低无关。",
        ),
        "rules.citations": (
            "悬空引用",
            "指向未检索内容的引用数，除以全部引用数；不说明其余引用是否真能支持所在的句子。",
        ),
        "judge.pass": ("评审通过率（未校正）", "评审判为通过的占比；评审判错的地方，这个数也跟着错。"),
        "judge.grounded": ("有依据", "评审认为每句话都能在检索结果中找到依据的占比；检索结果本身真实与否不作检查。"),
        "judge.complete": ("完整", "评审认为说全了问题所需内容的占比；不说明内容是否正确。"),
        "judge.should_abstain": (
            "检索内容不足",
            "评审认为检索结果不足以回答问题的占比；说的是检索，不是回答是否拒答。",
        ),
        "judge.fabrication": (
            "编造率",
            "没有拒答、且含有评审在检索结果中找不到依据的内容的占比；这类内容也可能碰巧属实。",
        ),
        "judge.correctness": ("作答者中有依据", "没有拒答的回答中，评审认为有依据的占比；拒答不计入。"),
        "judge.score.mean": ("平均分", "已定分数的平均值；4 分究竟算多好，只有人工标注能回答。"),
        "judge.undecided": ("未定", "多次评审后仍无法定论的用例数；既不算通过，也不算失败。"),
        "judge.unscored": ("未评出", "评审回复全部无法读取的用例数；既不算通过，也不算失败。"),
        "judge.flip_rate": (
            "翻转率",
            "前两次评审结论不同的用例占比；温度为 0 时服务可能只是重复自己，"
            "所以翻转率低既不说明评审有把握，也不说明它判得对。",
        ),
        "judge.alike": (
            "前两次逐字相同",
            "前两次回复逐字相同的用例占比；接近 100% 时，是服务在重复自己，翻转率说明不了评审有无疑虑。",
        ),
        "judge.unstable_share": ("不稳定", "任意两次评审结论不同的用例占比；评审会提前停止，各用例被问的次数不一。"),
        "judge.expectation_conflict": (
            "评审与评测集不符",
            "评审认为内容不足而评测集要求作答，或者反过来的用例数；两者都可能有错。",
        ),
    },
}

CAUSES: Mapping[str, Mapping[str, tuple[str, str, str]]] = {
    "en": {
        "leak": (
            "Leak",
            "A forbidden document, or another tenant's, was returned or cited.",
            "The access filter of the retriever, before anything is ranked.",
        ),
        "answered_out_of_scope": (
            "Answered out of scope",
            "The question should have been declined and was answered.",
            "The refusal instructions, and the score below which nothing counts as found.",
        ),
        "refused_in_scope": (
            "Refused in scope",
            "The question can be answered and was declined.",
            "The refusal instructions; first look whether the contexts held the answer.",
        ),
        "refused_then_answered": (
            "Refused, then answered",
            "The answer declines and then answers anyway.",
            "The prompt: a refusal ends the answer.",
        ),
        "not_in_kb": (
            "Not in the knowledge base",
            "The knowledge base does not hold what is asked.",
            "The documents; or the case, if the question is out of scope.",
        ),
        "recall_miss": (
            "Not retrieved",
            "No relevant document came among the first k.",
            "Retrieval: embedding, query rewriting, filters, k.",
        ),
        "crowded_out": (
            "Crowded out",
            "The relevant document was found, but ranked behind k others.",
            "The ranking: reranker, near-duplicates in the index.",
        ),
        "split_by_chunking": (
            "Split by chunking",
            "What is needed was cut apart at the border of two chunks.",
            "The chunking: size, overlap, cuts at headings.",
        ),
        "lost_in_assembly": (
            "Lost in assembly",
            "The document was retrieved and did not reach the prompt.",
            "The assembly of the prompt: length limit, order, deduplication.",
        ),
        "ignored_context": (
            "Context ignored",
            "The prompt held what is needed and the answer did not use it.",
            "The generation prompt, the model, the number of contexts.",
        ),
        "missing_point": (
            "Key point missing",
            "The answer leaves out something it must say.",
            "The generation prompt; or the key points of the case, if the wording alone differs.",
        ),
        "invented": (
            "Invented",
            "The answer says what no context holds, or what it must not say.",
            "The generation prompt (answer from the contexts alone) and the model.",
        ),
        "wrong_citation": (
            "Wrong citation",
            "A citation does not hold what it is cited for.",
            "How contexts are numbered, and how citations are read back.",
        ),
        "ambiguous_question": (
            "Ambiguous question",
            "The question can be meant in more than one way.",
            "The case: make the question say what it means.",
        ),
        "judge_at_fault": (
            "Judge at fault",
            "The answer is right; the judge is not.",
            "The judge's prompt or model.",
        ),
        "unknown": ("Unknown", "No rule explains this fail.", "Read the case: the answer beside its contexts."),
    },
    "zh": {
        "leak": ("越权泄漏", "返回或引用了禁用文档或其他租户的文档。", "检索的权限过滤，应在排序之前完成。"),
        "answered_out_of_scope": ("该拒未拒", "问题应当拒答，却作了回答。", "拒答指令，以及判定“没有找到”的分数阈值。"),
        "refused_in_scope": ("误拒", "问题可以回答，却拒答了。", "拒答指令；先看检索结果里是否有答案。"),
        "refused_then_answered": ("先拒后答", "先说无法回答，接着又作答。", "提示词：拒答之后不应再有内容。"),
        "not_in_kb": ("知识库缺失", "知识库里没有所问的内容。", "补充文档；若问题本在范围之外，则改用例。"),
        "recall_miss": ("未召回", "前 k 条里没有相关文档。", "检索：向量模型、查询改写、过滤条件、k 值。"),
        "crowded_out": ("被挤出", "相关文档已找到，但排在 k 名之后。", "排序：重排模型，以及索引中的近似重复内容。"),
        "split_by_chunking": ("被切断", "所需内容被切到相邻的两段里。", "切分：长度、重叠、按标题切。"),
        "lost_in_assembly": ("拼装丢失", "文档已检索到，却没有进入提示词。", "提示词拼装：长度上限、顺序、去重。"),
        "ignored_context": ("未用上下文", "提示词里有所需内容，回答却没有用。", "生成提示词、模型、检索段数。"),
        "missing_point": ("缺要点", "回答漏了必须说的内容。", "生成提示词；若只是说法不同，则补充用例的要点写法。"),
        "invented": (
            "编造",
            "回答说了检索结果中没有的内容，或不该说的内容。",
            "生成提示词（只依据检索结果作答）与模型。",
        ),
        "wrong_citation": ("引用错误", "所引内容不支持所在的句子。", "检索结果的编号方式，以及引用的解析。"),
        "ambiguous_question": ("问题有歧义", "问题可以有不止一种理解。", "用例：把问题写清楚。"),
        "judge_at_fault": ("评审误判", "回答是对的，评审判错了。", "评审提示词或评审模型。"),
        "unknown": ("不明", "没有规则能解释这次失败。", "读这条用例：对照检索结果看回答。"),
    },
}

COLUMNS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "rule_correct": "all rules kept",
        "must_include_ok": "all key points said",
        "acceptable_ok": "acceptable wording said",
        "must_not_include_ok": "nothing forbidden said",
        "faithful": "key points supported",
        "lexical_support": "words found in contexts",
        "expect_refusal": "refusal expected",
        "did_abstain": "refused",
        "refused_then_answered": "refused, then answered",
        "refusal_conflict": "flag against text",
        "leak": "leak",
        "n_citations": "citations",
        "n_dangling_citations": "dangling citations",
        "hit": "hit",
        "recall": "recall",
        "mrr": "reciprocal rank",
        "ndcg": "nDCG",
        "precision": "precision",
        "first_relevant_rank": "first relevant rank",
        "n_contexts": "contexts",
        "n_duplicates": "repeated ids",
        "judge_pass": "pass",
        "grounded": "grounded",
        "complete": "complete",
        "should_abstain": "contexts insufficient",
        "score": "score",
        "other_fields": "further fields",
        "unscored_reason": "unscored",
        "drawn": "drawn for the judge",
        "n_planned": "repeats planned",
        "n_asked": "asked",
        "undecided": "undecided",
        "n_votes": "read",
        "flipped": "first two differ",
        "unstable": "any two differ",
        "alike": "first two replies word for word the same",
        "judges": "what each judge decided",
        "judges_disagree": "the judges disagree",
        "confidence": "confidence in the cause",
        "n_unsupported_figures": "figures in no context",
        "probe": "asked again with the right passages",
        "suspicious": "speaks to the judge",
    },
    "zh": {
        "rule_correct": "规则全部满足",
        "must_include_ok": "要点齐全",
        "acceptable_ok": "说法可接受",
        "must_not_include_ok": "没有禁用说法",
        "faithful": "要点有依据",
        "lexical_support": "用词见于检索结果",
        "expect_refusal": "应拒答",
        "did_abstain": "已拒答",
        "refused_then_answered": "先拒后答",
        "refusal_conflict": "标记与文字不符",
        "leak": "越权泄漏",
        "n_citations": "引用数",
        "n_dangling_citations": "悬空引用",
        "hit": "命中",
        "recall": "召回率",
        "mrr": "名次倒数",
        "ndcg": "nDCG",
        "precision": "精确率",
        "first_relevant_rank": "首个相关名次",
        "n_contexts": "检索段数",
        "n_duplicates": "重复 id",
        "judge_pass": "通过",
        "grounded": "有依据",
        "complete": "完整",
        "should_abstain": "检索内容不足",
        "score": "分数",
        "other_fields": "其他字段",
        "unscored_reason": "未评出",
        "drawn": "抽中评审",
        "n_planned": "计划次数",
        "n_asked": "已问",
        "undecided": "未定",
        "n_votes": "已读",
        "flipped": "前两次不同",
        "unstable": "有两次不同",
        "alike": "前两次回复逐字相同",
        "judges": "各评审的结论",
        "judges_disagree": "评审之间有分歧",
        "confidence": "原因的把握",
        "n_unsupported_figures": "不在资料中的数字",
        "probe": "用正确资料重问",
        "suspicious": "像是说给裁判听的",
    },
}
