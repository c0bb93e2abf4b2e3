"""What each number of `report.html` means, in English and Chinese. No number and no markup here.

`METRICS`: name → (label, one sentence on what it says and does not).
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
