"""The words of a comparison's page, in English and Chinese: its texts, and what each of its numbers means. No markup.

Words that it shares with a run's page stand in `html_words`; those here win over them.
"""

from __future__ import annotations

from collections.abc import Mapping

PAGE_WORDS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "title": "RAG pairwise comparison",
        "embedded": "It judges no better than chance. What it prefers on this page shows only that the pipeline "
        "runs. Do not decide anything by it.",
        "embedded_again": "Embedded demo model: its preference is no better than chance.",
        "preference_title": "This is what the judge prefers",
        "preference": "It is not corrected by people's labels: whether people would choose the same answers is not "
        "known before they have labelled a sample.",
        "interval_note": "[a, b] is the {level} interval: where the number may lie for questions like these. "
        "n is the number of pairs a number is taken over.",
        "more_contexts": "{n} more contexts in the run's files",
        "a": "A",
        "b": "B",
        "differs": "What differs between A and B",
        "factor": "Factor",
        "unknown": "unknown",
        "nothing_recorded": "Unknown: nothing was recorded of either system.",
        "none_differs": "Nothing that was recorded ({n} factors). What else differs is unknown.",
        "same_factors": "{n} more recorded factors are the same in both.",
        "other_questions": "The two runs come from different eval sets; only questions that both were asked are "
        "compared.",
        "ends": "How the pairs ended",
        "ends_intro": "Every pair is asked in both orders, A first and B first. {valid} of {pairs} pairs have both "
        "orders decided; they alone count in the win rate, the consistency and what is said of places.",
        "end": "End",
        "means": "What happened",
        "made": "How this comparison was made",
        "pairs_counted": "Pairs",
        "not_paired": "{n} of {n_cases} questions were not compared: {n_errors} without an answer (from A {a}, from "
        "B {b}), {n_bare} without context texts, {n_rest} not drawn.",
        "pairs_sampled": "Sample: the judge saw {n} of the {of} pairs that it could judge, drawn with seed {seed}.",
        "no_pairs": "No pair was judged.",
        "pairs": "Pairs",
        "pairs_intro": "Decided pairs first, then inconsistent, undecided and unscored ones. Open a pair to read it.",
        "more_pairs": "{n} more in pairs.csv, {ties} of them ties",
        "inconsistent": "Inconsistent",
        "other_ends": "No verdict",
        "n_characters": "{n} characters",
        "order_ab": "A stood first",
        "order_ba": "B stood first",
        "places_ab": "The judge's own “A” is answer A here, its “B” answer B.",
        "places_ba": "The judge's own “A” is answer B here, its “B” answer A.",
        "winner": "winner",
        "tie": "tie",
        "no_majority": "no majority",
        "reason": "The judge's reason",
        "no_reason": "(no reason given)",
        "p": "Against one half: {p} (exact test).",
        "n_first": "{n} of {of} such pairs went to the first place.",
        "half_wins": "A better {a_wins}, B better {b_wins}, half a win for each {n}.",
        "leans": "{first} to the first place, {second} to the second",
        "median_ratio": "In the median, the winner's answer has {ratio} times as many characters as the loser's.",
    },
    "zh": {
        "title": "RAG 成对比较报告",
        "embedded": "该模型的判断不优于随机。本页所示的偏好只说明流程可以跑通，请勿据此作任何决定。",
        "embedded_again": "内置演示模型：其偏好不优于随机。",
        "preference_title": "以下是评审的偏好",
        "preference": "未按人工标注校正：在人工标注样本之前，不知道人是否会选同样的回答。",
        "interval_note": "[a, b] 为 {level} 区间：换一批同类问题，这个数可能落在的范围。n 为该数所依据的对数。",
        "more_contexts": "另有 {n} 段见运行目录中的文件",
        "a": "A",
        "b": "B",
        "differs": "A 与 B 有何不同",
        "factor": "因素",
        "unknown": "未知",
        "nothing_recorded": "未知：两个系统都没有任何记录。",
        "none_differs": "已记录的 {n} 项因素都相同；其他方面有何不同，未知。",
        "same_factors": "另有 {n} 项已记录的因素两者相同。",
        "other_questions": "两次运行的评测集不同；只比较两者都被问到的问题。",
        "ends": "各对的结局",
        "ends_intro": "每一对按两种次序各评一次：A 在前，B 在前。{pairs} 对中有 {valid} 对两种次序都有结论；"
        "胜率、一致率以及有关位置的数字只统计这些对。",
        "end": "结局",
        "means": "情形",
        "made": "本次比较的来历",
        "pairs_counted": "对数",
        "not_paired": "{n_cases} 个问题中有 {n} 个未作比较：{n_errors} 个缺回答（A 缺 {a}，B 缺 {b}），"
        "{n_bare} 个缺检索结果文字，{n_rest} 个未抽中。",
        "pairs_sampled": "抽样：可评的 {of} 对中，评审模型看了 {n} 对（随机种子 {seed}）。",
        "no_pairs": "没有评审任何一对。",
        "pairs": "各对详情",
        "pairs_intro": "先列分出胜负的，再列前后不一、未定和未评出的。点开可看详情。",
        "more_pairs": "另有 {n} 对见 pairs.csv，其中平局 {ties} 对",
        "inconsistent": "前后不一",
        "other_ends": "无结论",
        "n_characters": "{n} 字",
        "order_ab": "A 在前",
        "order_ba": "B 在前",
        "places_ab": "此处评审所说的“A”就是回答 A，“B”就是回答 B。",
        "places_ba": "此处评审所说的“A”是回答 B，“B”是回答 A。",
        "winner": "胜者",
        "tie": "平局",
        "no_majority": "没有多数",
        "reason": "评审的理由",
        "no_reason": "（没有给出理由）",
        "p": "与一半相比：{p}（精确检验）。",
        "n_first": "这类对共 {of} 对，其中 {n} 对选了排在前面的。",
        "half_wins": "A 胜 {a_wins} 对，B 胜 {b_wins} 对，各算半胜 {n} 对。",
        "leans": "偏前 {first} 对，偏后 {second} 对",
        "median_ratio": "按中位数，胜者的字数是负者的 {ratio} 倍。",
    },
}

# Name → (label, what it says and does not say).
PAIR_METRICS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "en": {
        "win_rate_a": (
            "Win rate of A",
            "Share of pairs won by A; a tie, and a pair whose orders disagree, counts as half a win for each. It is "
            "the judge's preference, not corrected by people's labels; where the interval holds 50 %, it does not "
            "say which is better.",
        ),
        "consistency": (
            "Consistency",
            "Share of pairs whose two orders give the same verdict. High consistency with a skewed share of the "
            "first place below is still bias, and a judge may be consistently wrong.",
        ),
        "first_position": (
            "First place preferred",
            "Of the pairs in which one and the same place was named in both orders, the share that went to the first "
            "place. Far from 50 %, the judge chooses by place; near it, these pairs may still be chance. How many "
            "pairs that concerns, consistency says.",
        ),
        "leans": (
            "One-sided leans",
            "Pairs in which one order names a winner and the other a tie, by the place named. They hint at a bias "
            "and are counted, not tested.",
        ),
        "longer_won": (
            "The longer answer won",
            "Share of won pairs, with answers of different lengths, that the longer answer won. That is no bias by "
            "itself: a longer answer may be the better one. Only people's labels can tell.",
        ),
        "flip_rate": (
            "Flip rate",
            "Share of orders whose first two repeats differ, averaged over pairs. A rate of 0 at temperature 0 says "
            "that the server repeats itself, not that the judge is right.",
        ),
    },
    "zh": {
        "win_rate_a": (
            "A 的胜率",
            "A 胜出的对所占比例；平局，以及两种次序结论不同的对，双方各算半胜。这是评审的偏好，未按人工标注校正；"
            "区间包含 50 % 时，说不出哪个更好。",
        ),
        "consistency": (
            "一致率",
            "两种次序结论相同的对所占比例。一致率高而下面的首位占比偏斜，仍然是偏差；评审也可能始终一致地判错。",
        ),
        "first_position": (
            "偏向排在前面的",
            "两种次序都选了同一位置的对中，选前者的占比。离 50 % 远，说明评审按位置选；接近 50 %，"
            "这些对也可能只是随机。涉及多少对，看一致率。",
        ),
        "leans": ("单边偏向", "一种次序有胜者、另一种次序为平局的对，按所选的位置计数。只是偏差的迹象，不作检验。"),
        "longer_won": (
            "较长的回答胜出",
            "分出胜负且两个回答长短不同的对中，较长者胜出的占比。这本身不是偏差：较长的回答可能确实更好，只有人工标注能分辨。",
        ),
        "flip_rate": (
            "翻转率",
            "前两次重复评审结论不同的次序占比，按对取平均。"
            "温度为 0 时翻转率为 0，只说明服务重复自己，不说明评审判得对。",
        ),
    },
}

# How a pair may end: name → (label, what happened). All but the last two have both orders decided.
ENDS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "en": {
        "a_wins": ("A better", "Both orders name A."),
        "b_wins": ("B better", "Both orders name B."),
        "ties": ("Tie", "Both orders call it a tie."),
        "first_twice": ("Inconsistent: first place", "Both orders name the answer that stood first."),
        "second_twice": ("Inconsistent: second place", "Both orders name the answer that stood second."),
        "leans_first": ("Inconsistent: leans to the first", "One order names the first place, the other a tie."),
        "leans_second": ("Inconsistent: leans to the second", "One order names the second place, the other a tie."),
        "undecided": ("Undecided", "An order has no majority among its repeats; half a swap decides nothing."),
        "unscored": ("Unscored", "No reply of the judge could be read in either order."),
    },
    "zh": {
        "a_wins": ("A 胜", "两种次序都选 A。"),
        "b_wins": ("B 胜", "两种次序都选 B。"),
        "ties": ("平局", "两种次序都判平局。"),
        "first_twice": ("前后不一：选前者", "两种次序都选了排在前面的回答。"),
        "second_twice": ("前后不一：选后者", "两种次序都选了排在后面的回答。"),
        "leans_first": ("前后不一：偏前", "一种次序选了排在前面的，另一种判平局。"),
        "leans_second": ("前后不一：偏后", "一种次序选了排在后面的，另一种判平局。"),
        "undecided": ("未定", "有一种次序的重复评审没有多数；只评出一半，不作结论。"),
        "unscored": ("未评出", "两种次序都没有可读的评审回复。"),
    },
}

PAIR_OUTCOMES: Mapping[str, Mapping[str, str]] = {
    "en": {
        "a": "A better",
        "b": "B better",
        "tie": "tie",
        "inconsistent": "inconsistent",
        "undecided": "undecided",
        "unscored": "unscored",
    },
    "zh": {
        "a": "A 胜",
        "b": "B 胜",
        "tie": "平局",
        "inconsistent": "前后不一",
        "undecided": "未定",
        "unscored": "未评出",
    },
}
