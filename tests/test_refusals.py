"""`refusals`: tables of answers as people and models write them, each with the reading that the contract asks for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_judge import refusals
from rag_judge.records import Abstention
from rag_judge.refusals import abstention

DECLINES = {
    "en": [
        "I don't know.",
        "I don’t know.",
        "I do not know the answer to that question.",
        "I'm sorry, but I don't have enough information to answer that.",
        "Based on the provided context, I cannot determine how long the warranty lasts.",
        "The provided documents do not contain information about parking fees.",
        "The context doesn't mention a dress code.",
        "The retrieved passages do not specify when salaries are paid.",
        "This is not covered in the employee handbook.",
        "The notice period is not mentioned in the documents provided.",
        "Relocation support isn't specified anywhere in the material.",
        "I could not find any details on the canteen in the sources.",
        "I couldn't locate that information in the knowledge base.",
        "I'm unable to answer this from the documents I was given.",
        "Unable to answer: the sources are about a different product.",
        "No relevant results were found.",
        "No relevant information found in the knowledge base.",
        "That question is outside the scope of the documents I have access to.",
        "Insufficient information.",
        "There is not enough information in the context to answer the question.",
        "There is no mention of overtime pay in the excerpts.",
        "Unfortunately, the passages only discuss annual leave and say nothing about sabbaticals.",
        "The passages only discuss annual leave [1][2]. I cannot tell from them how sabbaticals work.",
        "Thank you for your question! I searched the documents, but found nothing about pets in the office.",
        "The handbook has a chapter called Pensions [4], but the chapter itself is not included, so I can't answer.",
        "I can't share information about other customers.",
        "I'm not authorized to disclose another tenant's data.",
        "You do not have permission to view this information.",
        "As an AI assistant, I don't have access to your payroll records.",
        "**Answer:** The answer is not found in the provided context.",
        "None of the documents mention a loyalty programme.",
        "Neither source says anything about a loyalty programme.",
        "The question cannot be answered with the information available. Please contact HR for details.",
        "I wasn't able to find this in our docs. You may want to check the official website or reach out to support.",
        "Sorry, I can only answer questions about our own products.",
        "The documents describe how to request leave. They do not say how much leave a contractor gets.",
        "N/A",
        "While the documents discuss sick leave, they do not mention how it is paid.",
        "I don't see any mention of a discount, fee waiver, or voucher in these sources.",
        "It is not possible to determine the launch date from the given text.",
        "Not mentioned.",
        'My search returned no results for "quantum leave". Could you rephrase the question?',
        "The text says nothing about who approves the budget, how it is split, or whether it is capped.",
        "The fee for plan A is 5 EUR [1]. As for plan C, I have no information, so I cannot answer your question.",
        "If the handbook covers this, it was not among the passages I received; I do not have the answer.",
        "I'm afraid I have no information on that. Is there anything else I can help you with?",
        "Regrettably, the context provided lacks any details on the merger.",
        "> I could not find that in the documents.",
        "I've read the five passages and none of them touches on lactose-free menus.",
        "This isn't something the documentation explains.",
        "My knowledge base has no entry for that error code. Please raise a ticket with technical support.",
        "The passages discuss carry-over (up to 5 days [1]) but not what happens when someone leaves.",
        "The context only states the address and the opening hours. It does not include a phone number.",
        "I checked all four sources and couldn't find a mention of overtime.",
        "There's no way to know from these documents.",
        "The sources neither confirm nor deny this.",
        "The answer is on page 9 according to the index [2], but I wasn't given page 9, so I can't say.",
        "<think>The fee might be 5 EUR.</think>I don't know.",
    ],
    "zh": [
        "我不知道。",
        "抱歉,我不知道这个问题的答案。",
        "抱歉，根据提供的资料，我无法回答这个问题。",
        "根据提供的资料无法确定保修期的长短。",
        "根据现有资料,未能找到与停车费相关的信息。",
        "没有找到关于食堂的内容。",
        "资料未提及加班费的计算方式。",
        "提供的文档中没有涉及着装要求。",
        "文档并未说明工资何时发放。",
        "查不到相关记录。",
        "暂无相关信息。",
        "该问题超出了知识库的范围。",
        "您的问题不在我的知识范围内,建议咨询人工客服。",
        "这部分内容不在知识库中。",
        "从现有资料中无从得知。",
        "我无权访问其他租户的数据。",
        "抱歉,我不能透露其他客户的信息。",
        "沒有相關資訊。",
        "抱歉,根據提供的文件,無法回答您的問題。",
        "資料中未提及產假的天數。",
        "资料 [2] 只列出了标题,没有正文,因此无法回答。",
        "您好!感谢您的提问。很遗憾,目前的资料里没有提到宠物政策。请联系人力资源部。",
        "对不起,这个我不太清楚。",
        "现有信息不足以回答该问题。",
        "信息不足,无法判断。",
        "上下文没有提供足够的信息来回答这个问题。",
        "我在知识库里没有检索到相关内容,请换个问法再试试。",
        "检索结果为空。",
        "检索到的文档与您的问题无关。",
        "文档主要介绍了年假制度,没有说明停薪留职如何办理。",
        "文档仅提及年假和病假,未涉及停薪留职的规定。如有疑问,请咨询HR。",
        "虽然资料讨论了病假,但没有提到病假工资。",
        "手册里没写这一条。",
        "资料中未说明由谁审批,是否需要盖章,以及何时生效。",
        "不清楚。",
        "【答案】资料中没有明确规定。",
        "根据已知信息无法回答该问题。",
        "套餐甲的费用是 5 元 [1]。至于套餐丙,没有相关信息,无法回答您的问题。",
        "作为AI助手,我无法获取实时股价信息。",
        "我只能回答与本公司产品相关的问题。",
        "抱歉,没有查询到您要的信息,请您提供更多细节,我再帮您查找。",
        "很抱歉，提供的上下文中不包含关于并购的任何信息。",
        "未找到答案。",
        "文中没有给出明确的答案。",
        "恕不透露,该信息属于公司机密。",
        "目前没有这方面的资料,具体以公司公告为准。",
        "知识库中暂未收录该产品的说明。",
        "无法从资料中得出结论。",
        "资料里对此只字未提。",
        "2023 年的情况并未提供。",
        "该内容未在知识库中收录,建议提交工单。",
        "给定的上下文只说明了地址和营业时间,没有包含电话号码。",
        "这个我真不清楚,您可以打客服电话问一下。",
        "我查看了四份来源,均未找到兼职员工加班的说明。",
        "文档对此未作说明。",
        "搜索未返回任何结果。",
        "资料提到假期结转(最多 5 天)[1],但未提及离职时如何处理。",
        "未能检索到與問題相關的文件,請聯繫客服。",
    ],
}

REFUSES_THEN_ANSWERS = {
    "en": [
        "The documents do not mention this. However, returns are normally accepted for 60 days.",
        "I'm not sure, but it is 30 days.",
        "As an AI I cannot access live prices, generally it costs 5 EUR.",
        "I don't know. Probably two weeks.",
        "This isn't stated in the context, but most companies pay on the 25th.",
        "I couldn't find it in the documents. Typically, employees get 20 days.",
        "The policy does not mention a limit, so unlimited use is allowed.",
        "While the documents don't mention contractors, they get the same 20 days as employees.",
        "No information was found in the sources. The capital of Australia is Canberra.",
        "There is no specific rule in the handbook; you simply tell your manager one day before.",
        "The context does not say. Yes, you can.",
        "Not stated in the sources, so presumably free of charge.",
        "I have no document on that. My understanding is that it takes ten days.",
    ],
    "zh": [
        "资料未提及,但一般是三天。",
        "文档中没有相关信息。不过,通常可以在两年内全额退款。",
        "抱歉,我不清楚,应该是 30 天左右。",
        "知识库里没有提到这个问题,因此可以无限次使用。",
        "根据资料无法确定,然而多数公司在 25 日发工资。",
        "资料中没有说明,大概需要两周。",
        "没有找到相关内容。澳大利亚的首都是堪培拉。",
        "資料未提及,但通常為三天。",
        "虽然文档没有提到外包人员,但他们同样享有 20 天年假。",
        "没有相关规定,按照劳动法,加班费是工资的 1.5 倍。",
        "来源里没有看到这一点,一般来说通知期为一个月。",
        "我没查到相关文件,据我所知大约需要十个工作日。",
    ],
}

ANSWERS = {
    "en": [
        "Coupons cannot be combined.",
        "There is no fee.",
        "Refunds are not possible after 30 days.",
        "You cannot answer calls while in focus mode.",
        "No information is shared with third parties.",
        'The error message says "not found".',
        "The error message “no results found” means that the index is empty.",
        "If the locale is not specified, English is used.",
        "The default applies unless a value is not provided in the file.",
        "No.",
        "Yes, you can cancel at any time.",
        "Water damage is not covered.",
        "The basic plan does not include single sign-on.",
        "The policy does not cover flood damage.",
        "Users who do not know their number can look it up under Profile.",
        "Employees are unable to change their tax class in the portal.",
        "We do not offer refunds.",
        "We cannot accept returns without a receipt.",
        "Taxes are not included in the price.",
        "Guests do not have access to the audit log.",
        "The API returns 404 if no document is found.",
        "The fee is 5 EUR [1]. The documents do not say when it is due.",
        "The fee is 5 EUR, but the due date is not specified.",
        "Annual leave is 20 days. I am not sure whether it can be carried over.",
        "Up to 500 sessions. There is no further information about discounts.",
        "Delivery does not require a signature.",
        "It is not known for being fast, but it is reliable.",
        "Support staff will not ask for your password.",
        "This repair is outside the scope of the warranty.",
        "Please contact support.",
        "You're welcome! Is there anything else I can help you with?",
        "Items not listed in the catalogue have to be ordered by phone.",
        "You don't have to provide any information.",
        "Type `not found` into the search box.",
        "30 days.",
        "",
        "   \n",
        "If no approver is found, the request goes to the department head.",
        "Nothing is deducted from your salary for the first three days.",
        "Bike parking is free [1]. The text does not say whether it is guarded.",
        "Not all plans include phone support: only Premium does.",
        "The form asks for details that are not listed on your ID.",
    ],
    "zh": [
        "优惠券不可叠加。",
        "没有手续费。",
        "不支持退货。",
        "未提供发票的不予报销。",
        "无法提供发票的,不予报销。",
        "系统提示“未找到相关信息”时,请刷新页面。",
        "如果忘记密码,无法登录,可以点击找回密码。",
        "如未特别说明,价格均含税。",
        "超出配送范围的订单不支持退款。",
        "没有违约金。",
        "用户无法查看他人的订单。",
        "不知道工号的员工可以在个人中心查询。",
        "员工不能透露公司的薪酬信息。",
        "客服无法确定原因时,会转交技术部门处理。",
        "企业版支持 500 个并发会话。资料未提及折扣。",
        "费用为 5 元,资料中没有说明何时缴纳。",
        "年假为 10 天,其他情况未提及。",
        "不需要提供任何资料。",
        "没有次数限制,可以无限次使用。",
        "不是,试用期是三个月。",
        "可以。",
        "未注明日期的申请将被退回。",
        "该地区不在配送范围内。",
        "机器人无法回答的问题会转人工客服。",
        "页面显示无相关结果说明订单已归档。",
        "没有相关经验也可以申请。",
        "游客没有权限发表评论。",
        "保修不包括人为损坏。",
        "公司不会向第三方提供任何信息。",
        "请在 30 天内提交申请。",
        "错误代码 404 表示“没有找到页面”。",
        "费用為 5 元。",
        "系统未找到匹配订单时会提示重新输入。",
        "没有登记的访客拿不到胸牌。",
        "停放免费[1],是否有人看管文中没有说明。",
        "下载开始后无权退款。",
    ],
}


def _cases(table: dict[str, list[str]]) -> list[object]:
    return [pytest.param(text, id=f"{lang}{n:02}") for lang, texts in table.items() for n, text in enumerate(texts, 1)]


@pytest.mark.parametrize("text", _cases(DECLINES))
def test_a_refusal_with_nothing_answered_after_it_declines(text: str) -> None:
    found = abstention(text)
    assert (found.did_abstain, found.refused_then_answered) == (True, False)
    assert found.evidence
    assert found.evidence in text


@pytest.mark.parametrize("text", _cases(REFUSES_THEN_ANSWERS))
def test_a_refusal_followed_by_an_answer_does_not_decline(text: str) -> None:
    found = abstention(text)
    assert (found.did_abstain, found.refused_then_answered) == (False, True)
    assert found.evidence
    assert found.evidence in text


@pytest.mark.parametrize("text", _cases(ANSWERS))
def test_negation_in_the_matter_and_side_points_left_open_are_answers(text: str) -> None:
    assert abstention(text) == Abstention(did_abstain=False, refused_then_answered=False, evidence=None)


OWN_WORDINGS = [
    pytest.param("这个嘛,恕难奉陪。", ["恕难奉陪"], True, id="a wording that no table holds"),
    pytest.param("We pass on this one.", ["pass on THIS"], True, id="case and white space do not matter"),
    pytest.param("这个问题 暂 不 受 理", ["暂不受理。"], True, id="spaces between characters, a full stop"),
    pytest.param("\uff30\uff21\uff33\uff33", ["pass"], True, id="full-width letters"),
    pytest.param("抱歉,不便作答。", ["抱歉,不便作答"], True, id="a wording with a comma"),
    pytest.param("We don\u2019t do that.", ["don't do that"], True, id="a curly apostrophe"),
    pytest.param("The fee is 5 EUR. We pass on the rest.", ["pass on"], True, id="at the end, after a claim"),
    pytest.param("We pass on this one. It is 5 EUR.", ["pass on"], False, id="a claim follows"),
    pytest.param("It is 5 EUR.", ["pass on", ""], False, id="not in the answer; an empty wording is none"),
    pytest.param("It is 5 EUR.", ["。", " "], False, id="a wording of marks alone is none"),
]


@pytest.mark.parametrize(("text", "wordings", "declines"), OWN_WORDINGS)
def test_the_wordings_of_the_case_decline(text: str, wordings: list[str], declines: bool) -> None:
    assert abstention(text, wordings).did_abstain is declines


def test_without_its_wordings_the_same_answer_is_no_refusal() -> None:
    assert abstention("这个嘛,恕难奉陪。").evidence is None


EVIDENCE = [
    pytest.param(
        "Hello! The texts don\u2019t say, sorry.", "The texts don\u2019t say", id="the clause, not the sentence"
    ),
    pytest.param("抱歉，**资料未提及**产假。", "资料未提及**产假", id="as it stands, markup inside and all"),
    pytest.param(
        "It is 5 EUR. I cannot answer the rest.", "I cannot answer the rest", id="the refusal after the claim"
    ),
    pytest.param("Not mentioned. Probably 5 EUR.", "Not mentioned", id="of a refusal that was answered after"),
]


@pytest.mark.parametrize(("text", "evidence"), EVIDENCE)
def test_the_evidence_is_the_clause_with_the_refusal(text: str, evidence: str) -> None:
    assert abstention(text).evidence == evidence


@given(st.text(), st.lists(st.text()))
def test_every_text_has_a_reading(text: str, wordings: list[str]) -> None:
    found = abstention(text, wordings)
    assert (found.evidence is not None) == (found.did_abstain or found.refused_then_answered)
    assert not (found.did_abstain and found.refused_then_answered)
    assert found.evidence is None or found.evidence in text


def test_lone_surrogates_and_control_characters_are_read() -> None:
    assert abstention("\ud83d I don't know.\x00", ["\ud83d"]).did_abstain


AWKWARD = [
    "a,",
    "not ",
    "documents do not ",
    " ",
    " - ",
    '"',
    "[1",
    "没有相关",
    "资料",
    "without any ",
    "(",
    "i cannot, ",
    "a. ",
    "<think>",
]


@pytest.mark.parametrize("unit", AWKWARD)
def test_ten_times_the_text_has_at_most_ten_times_the_clauses(unit: str) -> None:
    """Each clause is searched once, and at most 600 characters of it."""
    short, long = ((unit * size)[:size] for size in (2_000, 20_000))
    n_short, n_long = (sum(1 for _ in refusals._clauses(text, ())) for text in (short, long))
    assert n_long <= 10 * n_short + 10


@pytest.mark.parametrize(
    "unit", ["not ", "资料没有相关", '"', "“", "(", "[1", "documents do not ", "the index lists ", "\n"]
)
def test_a_text_of_200_kb_in_one_clause_is_read(unit: str) -> None:
    text = (unit * 200_000)[:200_000]
    assert abstention(text + ". It is 5 EUR.").did_abstain is False
