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
    "a part of the cases has no label": "有一部分用例没有标注",
    "a part of the judged cases has no label": "评审过的用例有一部分没有标注",
    "both give one and the same rating on every case, so that kappa is 0/0": (
        "双方在每条用例上都给同一个值,kappa 为 0/0"
    ),
    "both give one and the same verdict on every case, so that kappa is 0/0": (
        "双方在每条用例上结论都相同且唯一,kappa 为 0/0"
    ),
    "fewer than two annotators": "标注人不足两名",
    "fewer than two different ratings on cases with two or more of them": "有两人以上标注的用例里,不同的取值不足两个",
    "no case has both ratings": "没有用例同时有双方的评分",
    "no case has both scores": "没有用例同时有双方的分数",
    "no anchor was judged twice in one run": "没有锚点在一次运行中被评过两次",
    "no anchor passes by human judgement": "没有锚点被人判为通过",
    "no anchor fails by human judgement": "没有锚点被人判为不通过",
    "no case has both verdicts": "没有用例同时有双方的结论",
    "no case is labelled": "没有用例有标注",
    "no case with a verdict": "没有用例得出结论",
    "no two labelled cases differ in length": "已标注的用例长度都一样",
    "of yes and no answers alone": "只对是/否类回答计算",
    "one of the two rates has no interval": "两个比例之一没有区间",
    "some cases entered the review with unknown probability": "有用例不是按已知概率入样的",
    "some cases entered the review with unknown probability, so that the labels stand for themselves": (
        "有用例不是按已知概率入样的,标注只代表它们自己"
    ),
    "the judge failed no case, so that nothing shows what its fails are worth": (
        "评审没有判过不通过,无从得知它的“不通过”值多少"
    ),
    "the judge passed no case, so that nothing shows what its passes are worth": (
        "评审没有判过通过,无从得知它的“通过”值多少"
    ),
    "the judge says the same of every case": "评审对每条用例说法都一样",
    "the judge's verdicts carry no usable information about the human's": "评审的结论对人的结论没有任何可用信息",
    "no case that the judge failed is labelled": "评审判不通过的用例没有一条有标注",
    "no case that the judge passed is labelled": "评审判通过的用例没有一条有标注",
    "no case was decided by both judges": "没有用例两个评审都有结论",
    "no judged case states an expectation": "评审过的用例都没有写明预期",
    "no judged case states whether a refusal is expected": "评审过的用例都没有写明是否应拒答",
    "no labelled case fails by human judgement": "已标注的用例没有一条是人判不通过的",
    "no labelled case passes by human judgement": "已标注的用例没有一条是人判通过的",
    "no question has a verdict in both runs": "没有问题在两次运行中都有结论",
    "no question has a value in both runs": "没有问题在两次运行中都有数值",
    "no common question": "没有共同的问题",
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
