"""The fixed English sentences of summary and manifest, in Chinese; any other is shown as it stands."""

from __future__ import annotations

from collections.abc import Mapping

SENTENCES_ZH: Mapping[str, str] = {
    "no case of this type states an expectation": "该类型没有用例写明预期",
    "no case of this type has a decided pass": "该类型没有用例得出通过与否",
    "no answered case has both relevant documents and contexts with ids": "没有已答用例兼有相关文档与带 id 的检索结果",
    "no answered case states an expectation": "没有已答用例写明预期",
    "no answer states a key point of its case": "没有回答说出所属用例的要点",
    "no answered case has must_include": "没有已答用例写明 must_include",
    "no answered case has must_not_include": "没有已答用例写明 must_not_include",
    "no answered case in scope has acceptable wordings": "没有范围内的已答用例写明可接受的说法",
    "no answered case states whether a refusal is expected": "没有已答用例写明是否应拒答",
    "no drawn case has a decided pass": "应评审的用例都没有得出通过与否",
    "no drawn case has this field decided": "应评审的用例都没有定下这一项",
    "no graded case answered": "评出的用例都没有作答",
    "no case has its first two repeats read": "没有用例的前两次评审都可读取",
    "no case has two replies": "没有用例得到两次回复",
    "no case has two repeats read": "没有用例有两次可读取的评审",
    "no case has a decided outcome": "没有用例得出结局",
    "no answer has a text": "没有回答带文字",
    "no answer says what was retrieved": "没有回答给出检索结果",
    "no case without expectations has an answer and contexts with texts": "没有既无预期、又有回答和资料原文的用例",
    "no answer has contexts with texts": "没有回答带资料原文",
    "all cases": "全部用例",
    "drawn cases, standing for all answered ones": "抽中的用例，代表全部已答用例",
    "the cases that the judge saw before a limit was reached, which is no random part": (
        "到达限额前评审看过的用例，并非随机抽样"
    ),
    "temperature not sent: the server's default was used": "未发送 temperature：用的是服务的默认值",
    "seed not sent": "未发送 seed",
    "streamed: the server gives no reply in one piece": "流式接收：该服务不一次性返回",
    "thinking switched off": "已关闭思考模式",
    "max_completion_tokens in place of max_tokens": "以 max_completion_tokens 代替 max_tokens",
    "response_format json_object in place of json_schema": "response_format 以 json_object 代替 json_schema",
    "response_format none in place of json_schema": "没有 response_format，原定为 json_schema",
    "instructions in the user message: no system role": "指令放在 user 消息里：服务不接受 system 角色",
    "none: all values are equal": "无区间：各值相同",
    "all values are equal": "各值相同",
    "wilson": "Wilson 区间",
    "wilson, times the answered share": "Wilson 区间，乘以已答比例",
    "bca bootstrap over questions": "按问题重抽样（BCa bootstrap）",
    "t over questions": "按问题的 t 区间",
    "no pair has both orders decided": "没有哪一对两种次序都有结论",
    "no pair was reversed by its order": "没有哪一对因次序而完全翻转",
    "no order has its first two repeats read": "没有哪种次序的前两次评审都可读取",
    "no pair with answers of different lengths was won": "没有哪一对在回答长短不同时分出胜负",
    "clopper-pearson": "Clopper-Pearson 精确区间",
    "bonett-price": "Bonett-Price 区间（成对差值）",
}
