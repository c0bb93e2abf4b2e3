"""Whether the text of an answer declines, told from its wording alone, in Chinese and English.

The tables of wordings stand first, in named groups of meaning; the reading of an answer against them stands last.
No judge, no context, no flag of the system under test: only what the answer says. A wording that is missing belongs
into a group here, never into a special case of the reading.

An answer is cut into sentences and clauses, and each clause is one of
    WHOLE    declines the question: "I cannot answer", 没有相关信息, a wording of the case itself
    SIDE     says that the documents are silent: declines too, unless a claim came before it (a partial answer)
    ASIDE    apologies, offers, advice to ask elsewhere, remarks on what the documents are about
    FRAME    a part that says nothing alone: "based on the documents", "if so", the rest of an enumeration
    CLAIM    everything else: it answers
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache

from rag_judge.records import Abstention

_Kind = Enum("_Kind", ["WHOLE", "SIDE", "ASIDE", "FRAME", "CLAIM"])
_NAME = re.compile(r"(?<!\?)<([A-Z资料细说载未]+)>")
_MASK = "□"  # stands for quoted text
_READ_CHARS = 600  # of a clause, from its beginning: bounds the work on text without punctuation
_SHOWN_CHARS = 200  # of the evidence

# --- words that the wordings are made of; `<NAME>` in a pattern stands for the entry here --------------------------
_VOCABULARY = {
    # What an answer calls its contexts. No words that a knowledge base is *about* (file, plan, database).
    "SOURCE": r"(?:(?:documents?|documentation|docs|contexts?|passages?|texts?|sources?|materials?|excerpts?|snippets?"
    r"|articles?|extracts?|chunks?|handbook|manual|guides?|faqs?|pages?|sections?|transcripts?|references?|content"
    r"|knowledge base|(?:search |retrieved )?results|information|resources?|corpus|our records)\b"
    r"|(?:provided|given|supplied|retrieved|available|uploaded|attached) (?:\w+ )?(?:data|files?|records?|index)\b)",
    # These rule over matters themselves ("the policy does not cover floods"): only their silence is a refusal.
    "PAPER": r"(?:polic(?:y|ies)|contracts?|agreements?|terms|regulations?|rules?|guidelines?|reports?|files?|index"
    r"|data(?:set)?|records?|answers?|list|specifications?|notes?|statutes?|laws?)\b",
    "TELL": r"(?:mention|specif(?:y|ically)|state|say|tell|address|discuss|describe|explain|indicate|detail|clarify"
    r"|elaborate|note|touch|speak|talk|refer|answer|outline|define|disclose|reveal|go into|make (?:it )?clear)\b",
    "HOLD": r"(?:contain|include|provide|cover|have|give|list|offer|show|present|appear|supply|hold|confirm|shed)\b",
    "TOLD": r"(?:mentioned|specified|stated|addressed|discussed|explained|indicated|detailed|clarified|disclosed"
    r"|elaborated|spelled out)\b",
    "HELD": r"(?:defined|described|documented|listed|covered|included|provided|available|found|given|present|contained"
    r"|part of|shown|noted|recorded|referenced|outlined|answered|say|in)\b",
    "FACTS": r"(?:information|info|details?|data|answers?|mention|references?|guidance|explanations?|specifics|context"
    r"|documents?|documentation|passages?|sources?|results?|matches|match|entries|content|evidence|indications?"
    r"|materials?|descriptions?|discussion|knowledge|facts?|statements?)\b",
    "ADV": r"(?:(?:also|currently|really|actually|unfortunately|just|simply|honestly|still|therefore|directly|fully|yet"
    r"|explicitly|specifically|clearly|exactly|definitively|accurately|confidently|reliably|completely|itself|even|all"
    r"|seem to|appear to|to be|be|been|ever|at this time|at the moment|quite|entirely|properly|anywhere|further"
    r"|necessarily|readily|presently|personally|precisely|conclusively|safely|responsibly) ){0,3}",
    "ADJ": r"(?:(?:any|enough|sufficient|relevant|specific|the|that|this|such|related|clear|direct|explicit|detailed|an?"
    r"|further|additional|more|other|exact|precise|necessary|required|requested|useful|adequate|reliable|matching"
    r"|concrete|of|particular|up-to-date|current|real-time|accurate|internal|single|definitive|about|usable"
    r"|supporting|contextual|pertinent|applicable|corresponding|kind|sort|type) ){0,5}",
    "CANNOT": r"(?:(?:can ?not|could not|may not|would not be able to|will not be able to|am unable to|are unable to"
    r"|was unable to|were unable to|am not able to|are not able to|was not able to|were not able to|remain unable to"
    r"|have not been able to|have been unable to|am not in a position to|are not in a position to) )",
    "FIND": r"(?:answer|determine|find|say|tell|locate|identify|infer|conclude|ascertain|establish|deduce|derive"
    r"|respond|figure out|work out|address (?:this|that|your)|speak to|retrieve|look (?:this|that|it) up|judge|see|know"
    r"|comment|draw|calculate|estimate|reply)\b",
    "GRANT": r"(?:provide|give|offer|share|disclose|reveal|discuss|help|assist|access|advise|supply|show|look up|assess"
    r"|recommend|confirm|verify|do that|comply|process|fulfil+|support|release|speculate|view|look into|complete|pull)\b",
    "BE": r"(?:is|are|was|were|has|have|had|does|do|did|seems?|appears?|being|been|could|can)",
    # Chinese
    "资料": r"(?:资料|文档|文件|上下文|知识库|材料|文本|段落|片段|内容|信息|手册|参考|检索结果|搜索结果|查询结果|文章|档案"
    r"|数据库|说明书|语料|来源|原文|文中|文献|背景|条目|指南|以上|上述|库中|库里|数据|报告|制度|政策|合同|协议|条款|规定"
    r"|规则|公告|章节|其中|页面|正文|这里|里面|提供的|给出的|给定的)",
    "细": r"(?:明确|具体|直接|详细|专门|进一步|特别|单独|清楚|完整|充分|任何|足够|相关|有关|对应|相应|准确|可靠|有效|有用"
    r"|可用|可供参考|匹配|符合|关联|确切|针对性|类似|这方面|这一方面|该方面|此方面|这类|那方面|更多|其他|其它"
    r"|此|该|这|的|地|到|过|出|有|能|一个|这个|这些|给|对|了|您要|您所?需|您想|所需|必要){0,5}",
    "料": r"(?:信息|资料|内容|数据|规定|说明|记录|依据|描述|答案|记载|介绍|文档|文件|材料|条款|线索|结果|条目|细节|解释|表述"
    r"|证据|知识|情况|消息|回答|文本|片段|定义|论述|章节|上下文|参考|政策|线索|解答|背景)",
    "说": r"(?:提及|提到|涉及|说明|指出|写明|列明|注明|载明|介绍|描述|讨论|阐述|谈及|谈到|解释|标明|明示|论及|述及|交代|交待"
    r"|言明|点明|界定|讲到|说到|写到|覆盖到|明说|触及|提过|讲过)",
    "载": r"(?:提供|包含|包括|给出|规定|记录|记载|公布|披露|明确|覆盖|涵盖|收录|列出|列示|约定|写|说|讲|提|含|有|显示|体现"
    r"|展示|反映|定义|回答|出现)",
    "未": r"(?:未能|未曾|未必|并未|尚未|均未|都未|也未|还未|暂未|皆未|未|没有|没能|没|不曾)",
}

# --- WHOLE: the question is declined -------------------------------------------------------------------------------
_WHOLE = {
    "cannot answer": (
        r"\b(?:i|the assistant|this assistant|we) <ADV><CANNOT><ADV><FIND>",
        r"\bi <ADV><CANNOT><ADV><GRANT>",
        r"\bwe <ADV><CANNOT><ADV><GRANT> (?:you )?(?:with )?<ADJ>(?:<FACTS>|this|that|it\b)",
        r"^(?:sorry )?<ADV>(?:unable to|not able to|can ?not|could not) <ADV>(?:be )?(?:<FIND>|<GRANT>|determined|answered)",
        r"\b(?:can ?not|could not|unable to) <ADV>(?:answered|determined|inferred|ascertained|deduced|established|derived)\b"
        r"(?! (?:by|until|before|after|without))",
        r"\b(?:answers?|information|question|query|details?|this|it) (?:can ?not|could not) <ADV>(?:found|located|resolved)\b",
        r"\b(?:can ?not|could not) <ADV>(?:found|located|confirmed|verified) (?:in|from|by|with|using|based) .{0,30}<SOURCE>",
        r"\b(?:is|be) (?:not possible|impossible|hard|difficult|not feasible|no way) (?:for me )?(?:to|of) <ADV>"
        r"(?:answer|determin|say|tell|know|identify|conclude|ascertain|provid|give an)",
        r"\bi (?:did|do|have|could|can) ?not <ADV>(?:find|found|locate|located|come across|manage to find|see|seen)\b",
        r"\bwe (?:did|do|have|could|can) ?not <ADV>(?:find|found|locate|located|come across) <ADJ><FACTS>",
        r"\bi (?:found|see|saw|find|have|had|came up with|could find|can find) <ADV>(?:no|nothing|little|none|zero)\b",
        r"\b(?:came|come|comes) up empty\b",
        r"(?:does|did|do|would|will|can|could) not <ADV>(?:let|allow|enable|permit) (?:me|us) to <ADV>(?:<FIND>|<GRANT>)",
        r"\b(?:prevent|keep|stop)s? me from (?:answer|determin|giv|provid)",
        r"\bleaves? (?:me unable|the question (?:open|unanswered))\b",
    ),
    "do not know": (
        r"\bi (?:do|did|would) not <ADV>know\b",
        r"\bwe (?:do|did) not <ADV>know (?:the answer|whether|if|when|how|what|why|that|this|about|for sure)\b",
        r"\bi <ADV>(?:am|was) not <ADV>(?:aware|familiar|informed|equipped|trained|knowledgeable|privy|in possession)\b",
        r"\bi (?:am|was) <ADV>(?:unaware|unfamiliar|not the right|at a loss|uninformed)\b",
        r"^(?:sorry )?(?:(?:do|did) not know|dunno|no idea|no clue|not sure|unknown|unanswerable|none found|n/?a|not found)$",
        r"^(?:no|zero) (?:results?|match(?:es)?|answer|hits|data|information)(?: (?:found|available|returned))?$",
        r"\b(?:beyond|outside) (?:of )?(?:my|the assistant's|what i)\b|\bmy knowledge does not\b",
    ),
    "no information": (
        r"\bi <ADV>(?:do|did) not <ADV>(?:have|possess|hold|see)\b",
        r"\bwe <ADV>(?:do|did) not <ADV>(?:have|possess|hold) <ADJ><FACTS>",
        r"\bi <ADV>(?:have no|lack|am (?:missing|lacking|without))\b|\bwe (?:have no|lack) <ADJ><FACTS>",
        r"\bthere (?:is|are|was|were|seems to be|appears to be) <ADV>(?:no (?:relevant|related|sufficient|matching|such|usable"
        r"|pertinent|answer)|not (?:enough|sufficient|any relevant)|insufficient|inadequate|too little) ?<ADJ><FACTS>",
        r"\bthere (?:is|are|was|were|seems to be|appears to be) <ADV>(?:no|not any|nothing) ?<ADJ>(?:<FACTS>)?"
        r"(?: (?:available|provided|given|found|here|present))?(?: (?:in|within|from) .{0,40}<SOURCE>)?$",
        r"\bthere is nothing .{0,40}<SOURCE>.{0,30} (?:that|to) .{0,20}answer",
        r"^(?:based on|given|due to|there is|i have|sorry)?.{0,30}\b(?:insufficient|not enough|inadequate|too little|lack of"
        r"|limited) <ADJ><FACTS>(?:$| (?:to|available|provided|in the|is available)\b)",
        r"\b<SOURCE>.{0,40} (?:is|are) <ADV>(?:insufficient|not (?:sufficient|enough|adequate)|inadequate|too limited)",
        r"\b<SOURCE>.{0,40} (?:is|are|was|were|has|have|bears?|do|does) <ADV>(?:un ?related|irrelevant|not? (?:<ADV>|relation)"
        r"(?:relevan|relate|pertain|pertinent|to (?:this|the|your))|nothing to do with)",
        r"\bno (?:relevant|matching|related|suitable|such|pertinent|corresponding|usable) ?<ADJ><FACTS>"
        r"(?:$| (?:<BE> )?(?:not )?<ADV>(?:found|available|retrieved|returned|provided|located|exist|about|on|regarding|in\b))",
        r"^(?:sorry )?no <ADJ><FACTS> (?:(?:<BE> ){0,3}(?:found|available|retrieved|returned|located))(?:$| (?:in|for|on|about"
        r"|regarding|within|that|to answer|from|matching)\b)",
        r"\b(?:search|query|retrieval|lookup|retriever|system|knowledge base) .{0,20}(?:returned|yielded|found|produced"
        r"|turned up|gave|retrieved|brought up) (?:no|zero|nothing|none|0)\b",
        r"\b(?:nothing|none) <ADV>(?:was|were|came up|could be|has been|is) ?<ADV>(?:found|retrieved|returned|relevant|useful"
        r"|available)?\b.{0,30}(?:$|<SOURCE>)",
    ),
    "out of scope": (
        r"\b(?:outside|beyond|out of|not within|not in|exceeds?|not part of) (?:of )?(?:the |my |our |its )?(?:\w+ )?(?:scope|range"
        r"|domain|coverage|area of expertise)(?:$|.{0,20} (?:of|for) (?:the |this |these |my |our |what |available |current )"
        r"?(?:<SOURCE>|provided|available|this|my|what|i\b|current|given|service|assistant|knowledge|conversation))",
        r"\bi (?:can|am able to|am only able to|am here to|was (?:built|designed|made) to) <ADV>only (?:help|answer|assist|provide"
        r"|respond|discuss|share|speak|handle|talk)",
        r"\bi (?:only|am limited to|am only|am restricted to|am confined to) (?:have access|able|answer|allowed|handle|cover|know"
        r"|help|questions|answering|topics|what|the)\b",
        r"\bnot something (?:that )?i (?:can|am|could|have|know|cover)\b",
    ),
    "may not tell": (
        r"\bi <ADV>(?:am|was) not <ADV>(?:authori[sz]ed|allowed|permitted|cleared|at liberty|supposed|going|comfortable|willing)",
        r"\b(?:i|we) (?:must |have to |need to |will have to |will )?(?:respectfully |politely )?decline\b",
        r"\bi (?:will|would|should|must) not <ADV>(?:answer|share|disclose|provide|discuss|speculate|give|guess|make up|reveal)",
        r"\bi would rather not\b|\bi prefer not to\b",
        r"\byou (?:do not have|are not authori[sz]ed|lack|have no|are not permitted|are not allowed) .{0,30}(?:access|see|view"
        r"|permission|authori[sz]ation).{0,20} (?:this|that|the requested|those|these|other|another)",
        r"^(?:this|that|the requested|such|the) (?:information|data|content|question|topic|document) (?:is|are) <ADV>(?:confidential"
        r"|restricted|private|classified|not public|not available to you|off limits|not accessible)",
        r"\b(?:(?:other|another) (?:customer|tenant|compan|user|client|employee|organi[sz]ation)|this|that|such|the requested)"
        r".{0,30} (?:can ?not|may not|must not) be (?:shared|disclosed|revealed|provided|accessed|given)",
    ),
    "无法回答": (
        r"(?:无法|不能|没法|难以|未能|没能|无从|不便|没办法|暂不能|不好|不可能|无力|做不到|不足以|不能够)(?:为您|向您|给您|对此|对"
        r"|从.{0,12}|根据.{0,12}|就.{0,10}|直接|准确|明确|进一步|完整|具体|给您|在.{0,10})*(?:做出|作出|给出|进行|得到|得出|提供)?"
        r"<细>(?:回答|解答|答复|作答|回复|确定|判断|得知|获知|知道|知晓|推断|推测|得出|断定|查到|找到|查询到|检索到|搜索到|搜到"
        r"|查证|判定|支持回答|支撑|答案|结论|给出.{0,6}(?:答|结论|回|信息|建议|说明)|获取|了解|看出)",
        r"(?:无法|不能|没法|未能|难以)(?:为您|向您|给您|直接|准确|进一步)*(?:提供|给出|获得|查询|查看|告知|告诉)<细>(?:关于|有关|与)?"
        r".{0,24}(?:<料>|建议|帮助|协助|服务|回应|您)",
        r"^.{0,6}(?:我|本助手|小助手|本系统)?(?:暂时|目前|暂|恐怕)?(?:无法|不能|没法|帮不了|帮不上|爱莫能助|答不上|回答不了|解答不了"
        r"|答不了)(?:为您|帮您)?(?:帮助|协助|处理|回答|解答|满足|办理|$|您|这)",
        r"(?:找|查|搜|查询|检索|看)(?:询|索)?不(?:到|着|出)<细>.{0,20}(?:<料>|$)",
        r"(?:<未>|并没有)<细>(?:找|查|检索|搜索|搜|查询|查找|获取|发现|看|匹配|获得|见)(?:到|出|得)?<细>(?:关于|有关|与|和|跟|对|任何"
        r"|能|可|符合|包含|涉及|提及).{0,24}(?:<料>|$)",
        r"(?:<未>|并没有)<细>(?:找|查|检索|搜索|搜|查询|查找|获取|发现|看|匹配|获得|见)(?:到|出|得)?(?:<细><料>|(?:$|它|答案|这))",
        r"(?:答案|问题|信息|结果).{0,6}(?:找不到|查不到|无解|未找到|没找到|不存在)",
        r"无从(?:得知|知晓|判断|回答|查证|考证|确认|了解|查起|谈起|解答)|不得而知",
        r"查无(?:此|相关|结果|记录)|(?:检索|查询|搜索)(?:结果)?(?:为空|无果|无结果|没有结果|未果|未命中)|没有命中|未命中",
    ),
    "不知道": (
        r"^(?:.{0,10}(?:我|我们|本助手|小助手|助手|这个|这|那|此|对此|目前|暂时|这里|抱歉|方面|问题|情况|也|都|并|还|实在|确实|暂|尚)"
        r")?(?:不太|并不|也不|还不|不|尚不|暂不|完全不)(?:是很|很|太|怎么)?(?:知道|清楚|了解|知晓|掌握|明白|熟悉|晓得)(?!的)",
        r"我.{0,24}(?:不知道|不清楚|不了解|不掌握|不知情|没有把握|一无所知)",
        r"(?:本助手|小助手|我)(?:目前|暂时|这里|这边|手头|当前|现在|并|也|还)*(?:没有|没|无)(?!办法说不)<细>.{0,24}<料>",
    ),
    "没有信息": (
        r"(?:没有|暂无|并无|尚无|均无|也无|未有|毫无|缺乏|缺少|无|没)(?:足够|相关|有关|相应|对应|匹配|可用|有效|可供|充足|充分|更多"
        r"|符合|合适|任何相关|直接相关|与之相关|此类|这方面|该方面|这类|任何|此|能)(?:的|直接|具体|可靠|有效|明确|能够|足够|参考|来)*"
        r"(?:回答.{0,10}的|支持.{0,10}的|支撑.{0,10}的)?(?:<料>|提及|匹配项)(?!会|将|被|需|要|须|泄|丢)",
        r"(?:^|<资料>(?:中|里|内)?)(?:暂|并|也)?(?:没有|无|暂无)(?:<料>|答案)(?:可用|可查|可供.{0,6})?$",
        r"(?:信息|资料|依据|内容|材料|上下文|数据|证据)(?:并不|尚|仍|还|明显|均|严重|过于)*(?:不足|不够|不充分|有限|欠缺|缺失|不全|缺乏|太少)",
        r"不足以(?:支持|支撑|让|用来|用于|对|我|判断|推|得|作|做|给|直|完|准|确|说明)*",
        r"<资料>.{0,20}(?:与|和|跟|同).{0,24}(?:无关|不相关|不匹配|没有关系|没有关联|毫不相干|关联不大|关系不大|并不相关)",
    ),
    "超出范围": (
        r"(?:超出|超过|超越|不在|不属于|并非|在)(?:了)?.{0,6}(?:我|本助手|助手|知识库|资料|文档|回答|解答|知识|能力|材料|上下文|客服|职责"
        r"|本系统|手册|问答|咨询|讨论|受理)(?!办).{0,10}(?:范围|范畴|能力|之外|以外|中$|内$|里$|之内|之中|之列|边界)",
        r"^(?:抱歉)?.{0,6}(?:该|此|这个?|您的?|本)(?:问题|提问|内容|咨询|请求|话题).{0,6}(?:超出|超过|不在|不属于).{0,12}(?:范围|范畴|权限|内容)",
        r"(?:只能|仅能|只可|只负责|仅支持|只|仅)(?:根据.{0,16})?(?:为您)?(?:回答|解答|提供|处理|协助|受理)(?:与|关于|有关|和|跟).{0,30}"
        r"(?:问题|咨询|信息|内容|查询)",
    ),
    "不能透露": (
        r"(?:无法|不能|不便|不可以?|无权|不得|不会|不予|不方便|没有权限|未被授权|未获授权|不宜|恕不|恕难)(?:为您|向您|对外|擅自|直接|在此"
        r"|随意)*(?:透露|披露|泄露|提供|告知|公开|分享|访问|查看|查询|展示|获取|讨论|奉告)<细>(?:任何)?.{0,6}(?:其他|其它|别的|他人|别人"
        r"|另一|另外|该租户|租户|该公司|该客户|该用户|隐私|保密|机密|内部|涉密|敏感|这些?(?:信息|内容|数据|资料)?|此类|该(?:信息|内容|数据|资料|部分)"
        r"|相关|有关|乙|本租户以外)",
        r"(?:我|本助手|助手)(?:目前|暂时|也|并)?(?:无权|没有权限|没有权利|未被授权|未获授权|不被允许)(?:访问|查|看|透|提|披|告|获|回|讨|分|处)",
        r"^(?:抱歉|很抱歉|对不起|目前|暂时)*(?:无权|没有权限|权限不足|无访问权限|恕难从命|无可奉告|不予置评|恕不(?:奉告|透露))",
        r"^(?:抱歉|很抱歉)?(?:该|此|这|这些|相关|其他公司的?|其他租户的?).{0,6}(?:信息|内容|数据|资料)(?:属于|涉及|为|是)?.{0,6}(?:保密|机密|隐私"
        r"|涉密|不公开|不便公开|不对外)",
        r"(?:涉及|属于)(?:其他|其它|他人|别的).{0,10}(?:隐私|租户|公司|客户|机密|信息|数据)",
    ),
}

# --- SIDE: the documents are silent, or the speaker hedges ---------------------------------------------------------
_SIDE = {
    "documents do not say": (
        r"(?:<SOURCE>|<PAPER>|\b(?:it|they|this|these|those|none|neither|either|nothing|which)\b).{0,60}?"
        r"\b(?:do|does|did|has|have) not <ADV>(?:<TELL>|mentioned|stated|specified|said)",
        r"<SOURCE>.{0,60}?\b(?:do|does|did) not <ADV><HOLD>",
        r"\b(?:it|they|these|those) (?:do|does|did) not <ADV>(?:contain|include|provide|give|cover|have|offer|list|show) <ADJ><FACTS>",
        r"^(?:does|did) not <ADV>(?:<TELL>|<HOLD>)",
        r"(?:<SOURCE>|<PAPER>).{0,60}?\b(?:lacks?|omits?|fails? to (?:<TELL>|<HOLD>)|makes? no|(?:is|are|remains?) silent|says? nothing"
        r"|(?:contains?|includes?|provides?|has|have|offers?|gives?|mentions?|holds?|say|states?|lists?|shows?) <ADV>(?:no|nothing"
        r"|neither|little|only limited) ?<ADJ>(?:<FACTS>)?)",
        r"\b(?:none|neither|nothing|no part|nowhere) (?:of|in|within|from|among) .{0,40}(?:<SOURCE>|<PAPER>|<TELL>|<HOLD>)",
        r"^no (?:\w+ )?(?:<SOURCE>|<PAPER>) .{0,20}?(?:<TELL>|<HOLD>|mentions|states|specifies|contains|covers|describes|addresses|gives)",
        r"\b(?:no|without) <ADJ>(?:mention|information|details?|guidance|references?|specifics|info|discussion|indication"
        r"|description|explanation|answer|data|documentation|statement|word) (?:is |are |was |were )?(?:given |provided |available "
        r"|included |made |found )?(?:of|about|on|regarding|concerning|related|relating|as to|pertaining|to answer|that|whether"
        r"|specific|in .{0,30}<SOURCE>)(?!.{0,40} (?:is|are|was|were|will be|be) (?:shared|sold|stored|collected|lost|deleted"
        r"|required|needed|kept|sent|transferred|disclosed))",
        r"\b(?:there (?:is|are|was|were) (?:no|not any|nothing)) ?<ADJ>(?:<FACTS>)? ?(?:about|on|regarding|concerning|that|which|to|provided"
        r"|given|available|mentioning|specifying|indicating|setting|sample)\b(?! (?:be|worry|pay|do)\b).{0,40}",
    ),
    "is not mentioned": (
        r"(?:^|(?<!that )(?<!which )(?<!who )\b<BE> )(?:not|nowhere|never) <ADV><TOLD>",
        r"(?:^|\b<BE> )(?:not|nowhere|never) (?:explicitly|specifically|directly|clearly) <HELD>(?! in the (?:price|plan|fee))",
        r"(?:^|(?<!that )(?<!which )(?<!who )\b<BE> )(?:not|nowhere|never) <ADV>(?:<HELD> )?(?:to be )?(?:anywhere )?(?:in|by|within|from|on"
        r"|among|under) .{0,30}(?:<SOURCE>|the provided|the given)",
        r"\b(?:do|does|did) not (?:seem|appear) (?:to be )?(?:<TOLD>|<HELD>)?.{0,10}(?:<SOURCE>|<TOLD>|in the|anywhere)",
        r"\b(?:missing|absent|left out|omitted) (?:from|in) .{0,30}<SOURCE>",
        r"\b(?:its|the|their|whose) (?:\w+ )?(?:text|content|contents|body|details?|wording) <BE> (?:not|missing|unavailable|omitted|empty)",
        r"\b(?:it|this|that) (?:is|remains) (?:unclear|not clear|unknown|unspecified|not known|uncertain)\b",
        r"\b(?:unclear|not clear|unknown|unspecified|undisclosed) (?:from|in|based on) ",
        r"^(?:unspecified|not specified|not stated|not mentioned|not available in|not in) ?.{0,40}$",
    ),
    "hedge": (
        r"\bi <ADV>(?:am|was) not <ADV>(?:sure|certain|confident|positive)\b|\bi (?:am|was) <ADV>(?:unsure|uncertain)\b",
        r"\b(?:i|we) <ADV><CANNOT><ADV>(?:confirm|verify|guarantee|be (?:sure|certain))\b",
    ),
    "资料未提及": (
        r"<未><细><说>",
        r"<资料>.{0,24}?(?:<未>|并?不|均不|也不|都不)<细><载>",
        r"<资料>.{0,20}?(?:没有|并无|无|不含|不包含|不包括|缺少|缺乏|暂无|找不到|看不到|看不出|未见|不存在|没)(?!.{0,3}(?:限制|手续费|费用))",
        r"<未><细>(?:提供|包含|给出|规定|记录|记载|公布|披露|列出|收录|涵盖|覆盖|显示)<细>(?:关于|有关|与|对)?.{0,30}<料>",
        r"^.{0,10}(?<!从)(?:<未>)(?:明确|具体|详细|直接|专门|单独)的?(?:给出|列出|提供|规定|约定|公布|指定|写|说|标|定义|限定)",
        r"(?:没有|暂无|并无|尚无|无|缺乏|缺少|不含|不包含|不涉及|不包括|找不到|没|不存在)(?:任何|具体|明确|详细)*(?:关于|有关|针对|涉及|提及"
        r"|提到|说明|介绍|描述|对于|与.{1,20}(?:相关|有关|对应)|解释|论述)",
        r"(?:没有|暂无|尚无|缺乏|缺少|缺|无)(?:任何|具体|明确|详细|确切|更多|其他|进一步)的?<料>(?!会|将|被|需|要|须|泄|丢)",
        r"^(?:暂无|暂时没有|目前没有|尚无|未知|不详|不明|暂不明确|尚不明确|无)<细>.{0,12}<料>?$",
        r"不在<资料>(?:之?中|之?内|里)",
    ),
    "不确定": (
        r"^(?:.{0,8}(?:我|这|此|目前|暂|也|抱歉))?(?:不太|不|并不|不敢|无法|不能|难以|没法|不好)(?:完全|十分|很|百分之百|进一步|直接)?"
        r"(?:确定|确认|肯定|保证|核实|证实)(?!的(?!$))",
        r"(?:无法|不能|难以|没法|无从)(?:进一步|直接|准确|从.{0,12}|根据.{0,12})*(?:确认|核实|证实|保证|明确|断言|计算|评估|预测|预知|比较)",
    ),
}

# --- ASIDE: what neither answers nor declines ----------------------------------------------------------------------
_ASIDE = {
    "courtesy": (
        r"^(?:i am |i )?(?:very |so |really |truly |deeply )?(?:sorry|apologi[sz]e|afraid|regret|hope|appreciate|thank)",
        r"^(?:sorry|apolog|unfortunately|regrettably|thank|thanks|hello|hi\b|hey|sure$|certainly$|of course$|great question|good question"
        r"|you are welcome|welcome|best regards|take care|have a (?:nice|great|good)|that is (?:a|an) (?:\w+ )?question|please note)",
        r"^(?:i understand|i see$|you (?:asked|are asking|want to know)|(?:your|the|this) question (?:is|asks|concerns|seems)|the user)",
        r"^(?:非常|很|十分|实在|真的|真是|深感|深表)*(?:抱歉|对不起|不好意思|遗憾|歉意|感谢|谢谢|多谢)|^(?:您好|你好|亲|好的$|尊敬的|明白了$|祝|希望|愿)",
        r"^(?:您|你|用户)(?:的问题|询问|咨询|问|想了解|想知道|提到的问题)|^这是(?:一个|个)?.{0,6}问题$|^(?:我)?(?:理解|明白)(?:您|你)",
    ),
    "offer": (
        r"^(?:please )?(?:do not hesitate|feel free|let me know|happy to|glad to|just ask|tell me|is there anything)",
        r"^(?:i|we) (?:can|could|will|would|may|might|am|are) (?:then |also |still |try |gladly |always |certainly |be )*(?:happy|glad|help"
        r"|assist|look|search|check|try|do my best|offer|point|pleased|better|give you|provide you|gladly|answer|refer|direct)",
        r"^(?:if|should|once|when) (?:you|there|it|that|this|the) .{0,30}(?:have|need|can|could|would like|want|provide|share|let|tell|clarify"
        r"|give|upload|point|specify|rephrase|other|help|know|point|supply|send|prefer|wish|is any)",
        r"^(?:我|我们|本助手)?(?:可以|会|能|很?乐意|将|愿意|再|随时|来|尽力|就能|才能|便|非常|很|也|也可以|即可|就){1,4}(?:再|继续|尽力|尽量|进一步)*"
        r"(?:帮|协助|为您|为你|给您|给你|根据|提供|解答|尝试|查|基于|重新)",
        r"^(?:欢迎|期待|随时|是否还|还有什么|还有其他|还需要|供您?参考|仅供参考|敬请|还请|见谅|以便|方便我|谅解|有其他)",
        r"(?:有什么|什么可以|其他问题|其它问题|任何问题|别的问题|其他需要|进一步帮助).{0,12}(?:帮|吗|欢迎|随时|$)|(?:告诉|告知|联系)我",
    ),
    "advice to look elsewhere": (
        r"^(?:please |kindly )?(?:<YOU> )?(?:directly )?(?:contact|consult|reach out|get in touch|refer to|turn to|inquir|enquir|speak (?:to|with)|talk to"
        r"|contacting|consulting|reaching out|referring|rephras|reword|clarify|try (?:rephras|again|ask|search|a different|check|contact|another|refin))",
        r"^(?:please |kindly )?(?:<YOU> )(?:directly )?(?:check|see|visit|look|review|try|ask|call|email|search|verify|confirm|seek|find|explore|go to"
        r"|obtain|get)(?:ing)?\b.{0,60}<ELSEWHERE>",
        r"^(?:please |kindly )?(?:directly )?(?:check|see|visit|look|review|ask|call|email|search|verify|confirm|seek)(?:ing)?\b.{0,60}<ELSEWHERE>",
        r"^(?:please |kindly )?(?:<YOU> )?(?:provide|share|upload|supply|give|specify|send|include|add|point)(?:ing)?\b.{0,40}\b(?:more|additional|further"
        r"|context|document|passage|details|information|source|text|me|question)",
        r"^(?:<ELSEWHERE>|someone|they|he|she|it|that|this).{0,40} (?:can|could|may|might|should|will|would)(?: be)?(?: \w+)? (?:able|help|assist|answer"
        r"|know|confirm|advise|clarify|tell|provide|found|in another|elsewhere|covered|described)",
        r"(?:请|建议|可以?|需要?|应|最好|推荐|不妨|烦请|麻烦|还是|直接|或者?|并|再|也可|以及|另外|尝试|如需.{0,12}|您|你|^)(?:您|你|直接|再|先|自行|进一步|尽快|及时"
        r"|另行|可以?|考虑|尝试|另外|去|通过.{0,16}|前往|向.{0,16}|与.{0,16}|到.{0,12}|在.{0,12}|登录.{0,12}|和.{0,12}|跟.{0,12}|找){0,3}(?:联系|咨询|拨打|查阅|参考"
        r"|参阅|参照|询问|请教|访问|关注|致电|反馈|沟通|求助|留意|换个|换一|重新(?:提问|描述|表述|提交|输入|检索)|改写|补充(?:更多|相关|资料|文档|信息|上下文)"
        r"|提供(?:更多|相关|具体|进一步|补充|完整|更|详细|额外|其他|上下文|资料|文档|材料|该)|上传|核实|查询|查看|查找|搜索|了解|获取|确认$|确认(?:一下|相关|具体)|说明具体|明确)",
        r"以.{0,24}(?:为准|规定为准)|由.{0,16}(?:解答|确认|答复|处理|核实)|(?:转接|转|接入).{0,4}人工|^(?:人工客服|客服|hr|人力资源部?|管理员).{0,16}"
        r"(?:会|可以|能|将)?(?:为您|给您|帮您|解答|协助|答复|处理)",
    ),
    "remark on the documents": (
        r"(?:<SOURCE>|<PAPER>|\bthey|\bit|\bthese|\bwhich|^the (?:\w+ )?(?:section|chapter|title|heading)) .{0,40}?\b(?:only|mainly|primarily|mostly|merely"
        r"|just|solely|exclusively|largely|simply|instead)\b",
        r"^(?:only|just|mainly) (?:<TOLD>|<TELL>|discuss|describes|mentions|lists|covers|contains|the )",
        r"^(?!.*\b(?:that|as|is|are|can|must|\d+)\b).{0,30}(?:<SOURCE>|<PAPER>|they|it|these) (?:\w+ )?(?:do |does |did )?(?:discuss|describe|cover|focus|list|mention"
        r"|address|contain|include|deal|talk|refer|concern|outline|relate|pertain|revolve|provide|touch|explain)(?:e?s|ed)?\b",
        r"<SOURCE>.{0,30} (?:is|are|was|were) (?:all |mainly |only |primarily )?(?:about|related to|limited to|focused on|concerned with|dedicated to)\b",
        r"^(?:i|we) (?:have )?(?:searched|reviewed|checked|looked|examined|went through|read|consulted|scanned|gone through)",
        r"^(?:after|having|upon|by) (?:\w+ )?(?:search|review|check|look|examin|read|go|consult|scan|analy)",
        r"(?:只|仅|仅仅|只是|主要|大多|多为|都是|均为|单纯|大部分|侧重|集中|围绕|局限).{0,8}(?:<说>|<载>|列|讲|谈|关于|围绕|针对|标题|目录|涉|在|是|有)",
        r"^(?!.*(?:为|是(?!关于)|可以|需|应|必须|\d)).{0,8}<资料>.{0,12}(?:介绍|描述|讨论|讲述|涉及|列出|围绕|包含|包括|涵盖|提到|提及|说明|是关于|讲的是|都是|谈)",
        r"^(?:我|已|经|通过|查阅|检索|经过|在)(?:已|们|为您|仔细|对|过|在|从|根据)*(?:.{0,12}(?:查阅|检索|查询|搜索|查找|核对|梳理|分析|浏览))",
    ),
}
_VOCABULARY["YOU"] = (
    r"(?:(?:you|one) (?:can|may|might|could|should|will need to|would need to|need to|must|will have to)(?: (?:want|wish|need|like|try|also|consider|still|be able"
    r"|have|always|either|instead|then|perhaps))*(?: to)?|i (?:would )?(?:strongly )?(?:recommend|suggest|advise|encourage)(?: you)?(?: that you)?(?: to)?|consider"
    r"|try|it (?:is|may be|might be|would be) (?:best|recommended|advisable|better|helpful|a good idea|worth|necessary)(?: to)?|i would|be sure to|feel free to)"
)
_VOCABULARY["ELSEWHERE"] = (
    r"(?:\bhr\b|human resources|support|customer|service|website|web ?site|official|documentation|\bdocs\b|manager|team|administrator|\badmin|handbook|resources?"
    r"|sources?|help|expert|professional|lawyer|attorney|doctor|adviser|advisor|specialist|provider|vendor|department|supervisor|representative|directly|elsewhere"
    r"|another|other|online|intranet|portal|policy|policies|agent|authorit|latest|your \w+|company|manual|reliable|assistance|document|spelling|again|keyword)"
)

# --- what keeps a wording from being a refusal, and what a clause may begin with -----------------------------------
_CONDITION = (  # "if the limit is not specified, the default holds": the clause asserts nothing
    r"\b(?:if|unless|whenever|in case|in the event|when (?:an?|no|the|it|you|any))\b",
    r"^(?:如果|如(?!下|上|此)|若|假如|要是|倘若|一旦|除非|凡|当)",
    r"^(?!.*(?:是|我|问题)).*(?:时|者|的话|的|后|前)$",
)
_REPORTED = (  # a message that someone else shows
    r"\b(?:message|error|screen|api|server|command|status|log|dialog|banner|app|button|box)\b.{0,20} (?:says?|shows?|reads?|displays?|returns?"
    r"|reports?|prints?|means|indicates?|saying)\b",
    r"(?:系统|页面|屏幕|界面|弹窗|接口|api|错误|程序|客户端|设备|按钮|提示框).{0,10}(?:提示|显示|报错|返回|弹出)",
)
_SOMEONE = (  # who else cannot, does not know, has not provided: matter, no refusal. Looked for just before the wording
    r"(?:用户|员工|职工|客户|顾客|您|你|你们|商家|卖家|买家|会员|申请人|学生|学员|管理员|访客|游客|供应商|代理商|经理|主管|服务器|客服|机器人|快递员|骑手|司机"
    r"|患者|乘客|考生|租户|账户|账号|第三方|任何人|其他人|他人|对方|他们|门店|开发者|成员|商户|人员|者|方|家长|老师|医生|公司|企业|平台|银行|部门)"
    r"(?!的|所|提|询|咨|想|问|要)[^,的]{0,4}$"
)
_RELATIVE = (
    r"^[^,]{0,12}的[^,]{0,16}(?:将|会|须|应|可|一律|视为|不予|不得|按|则|转|必须|需|请|不能)"  # 未提供发票的不予报销
)
_SIDE_POINT = r"^.{0,40}\b(?:further|additional|more|exact|precise|anything else|other (?:details|aspects|points))\b|^.{0,14}(?:更多|其他|其它|进一步|其余)"
_LEAD = (
    r"^(?:(?P<turn>but|however|although|though|even though|nevertheless|nonetheless|that said|having said that|yet|still|whereas|while|instead"
    r"|regardless|so|therefore|thus|hence|consequently|accordingly|which means|this means|meaning|that means|then"
    r"|(?:但|但是|不过|然而|可是|只是|而|却|尽管如此|因此|所以|故|因而|于是|那么|这意味着|也就是说|可见|虽然|尽管|虽))(?:\b|(?<=[一-鿿]))"
    r"|(?:and|also|additionally|in addition|furthermore|moreover|or|alternatively|otherwise|for now|perhaps|maybe|meanwhile|in the meantime|in that case"
    r"|as such|in short|overall|in summary|in conclusion|unfortunately|regrettably|sadly)\b"
    r"|同时|并且|并|且|另外|此外|总之|综上(?:所述)?|目前|也|还)[ ,]*"
)
_REASON = r"^(?:because|since|as\b|due to|given that|因为|由于|鉴于|原因)"
_LABEL = (
    r"^(?:answer|final answer|response|note|summary|conclusion|reason|explanation|sources?|references?|citations?|reasoning|analysis|question|a|q"
    r"|答|答案|回答|结论|说明|注|注意|原因|来源|参考(?:资料|来源|文献|文档)?|总结|依据|问|问题|分析|解释|提示|备注|温馨提示|最终答案)$"
)
_FRAME = (
    r"^(?:for|to|in|from|based on|according to|given|regarding|concerning|about|as for|as an?|with|without|at|on|within|under|of|after|before|during|upon|looking at"
    r"|despite|in terms|if|when|where|including|such as|especially|namely|having|unless|should|once|until)\b"
    r"|^(?:关于|对于|根据|依据|基于|从|在|就|按照|针对|作为|结合|如果|如|若|当|除了|至于|有关|以|因|依照|通过|截至|对|除此之外)"
)
_ENUMERATION = (
    r"^(?:which|who|whose|what|how|whether|why|or|nor|including|such as|e\.g|i\.e|especially|any|let alone|not|only|as well as|plus)\b"
    r"|^(?:以及|和|或|及|与|还是|包括|例如|比如|如|甚至|尤其|特别是|更不用说|也没|等)|(?:是否|何时|如何|怎么|怎样|多少|多久|哪|谁|什么|为何|几)"
)
_ASSERTION = (
    r"^(?:yes|no|yep|nope|correct|generally|usually|typically|normally|often|probably|likely|my (?:best )?guess|i (?:think|believe|guess|would (?:say|guess|assume)"
    r"|suspect|assume|know|recall))\b"
    r"|^(?:(?!\b(?:that|which|who|whose|where|when|how|whether|what|why)\b).){1,80}?\b(?:is|are|was|were|can|may|might|must|should|will|would|has|have|costs"
    r"|takes|lasts|requires|needs|gets?|applies|means|depends|starts|ends|does|do|supports|includes|offers|allows|cannot)\b"
    r"|^(?:是|可以|能|会|不|有|支持|一般|通常|大概|大约|约|按|应该|估计|我觉得|我认为|我猜|据我|按惯例|常见|多数|大多|默认)"
    r"|.(?:是|为|可|能|会|需|应|须|必须|要|有|支持|享|由|将|已|达|属于|提供|建议|允许|不得|在|按)|\d"
)

# --- the reading ---------------------------------------------------------------------------------------------------
_QUOTED = re.compile(
    r'"[^"\n]{1,200}"|“[^“”\n]{1,200}”|「[^「」\n]{1,200}」|『[^『』\n]{1,200}』|`[^`\n]{1,200}`|(?<!\w)‘[^‘’\n]{1,200}’(?!\w)'
)
_NOT_TEXT = re.compile(
    r"[\[【][^\[\]【】\n]{0,40}\d[^\[\]【】\n]{0,20}[\]】]|\]\([^()\s]{0,300}\)|\*\*|__|[#>]+ |https?://\S+"
    r"|[(（](?:source|see|ref|doc|来源|参考|见|资料|文档)[^()（）\n]{0,60}[)）]|^[ \t]*(?:[-*•+>]|\d{1,2}[.)、])[ \t]+",
    re.IGNORECASE | re.MULTILINE,
)
_SENTENCE_END = re.compile(
    r"[。！？!?；;\n…]+|(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)(?<!\bapprox)(?<!\bDr)(?<!\bMr)(?<!\bincl)[.．](?=[\s\"”)\]]|$)"
)
_CLAUSE_END = re.compile(
    r"，|(?<!\d),|,(?!\d)|(?<!\d)[:：]|[:：](?!\d)|[()（）]|\s[-–—]+\s|[—–]+"
    r"|(?<=\s)(?=(?:but(?! also)|however|although|though|because|nevertheless|(?:so|and) (?:i|we|it|you|they|there))\b)"
    r"|(?=(?<![不非])但(?![凡书])|然而|因此|所以|因为|并且|而且)",
    re.IGNORECASE,
)
_TRADITIONAL = str.maketrans(
    "無沒關資訊檔說規內為這個問題確斷導據係聯繫請諮詢們對應範圍識庫權訪檢獲從給準謝歡幫還並過雖僅討論標記載錄數協議費員戶網電話時間會後來處務業專嗎麼現發見認證實與於暫當類線詳細節條約額萬號點開歷結顯覆將須離進體單報領導總經僱參節釋術涵蓋憑獻語話題較較庫夠"
    "錯誤遺憾讀測評處轉補團隊貴",
    "无没关资讯档说规内为这个问题确断导据系联系请咨询们对应范围识库权访检获从给准谢欢帮还并过虽仅讨论标记载录数协议费员户网电话时间会后来处务业专吗么现发见认证实与于暂当类线详细节条约额万号点开历结显复将须离进体单报领导总经雇参节释术涵盖凭献语话题较较库够"
    "错误遗憾读测评处转补团队贵",
)
_SPELLED_OUT = tuple(
    (re.compile(short), full)
    for short, full in (
        (r"\bcan'?t\b", "can not"), (r"\bwon'?t\b", "will not"), (r"n't\b", " not"), (r"\b(do|does|did|is|are|was|could|would|have)nt\b", r"\1 not"),
        (r"'re\b", " are"), (r"\bi'?m\b", "i am"), (r"'ve\b", " have"), (r"'ll\b", " will"), (r"'d\b", " would"),
        (r"\b(it|that|there|this|what|here|he|she|who)'s\b", r"\1 is"), (r"\bcannot\b", "can not"), (r"资讯", "信息"),
        (r"\s+", " "), (r"(?<=[一-鿿,]) | (?=[一-鿿])(?<=[一-鿿] )", ""),
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Clause:
    kind: _Kind
    shown: str  # as it stands in the answer


def abstention(answer: str, wordings: Sequence[str] = ()) -> Abstention:
    """Whether the answer declines: a refusal wording, and no claim after it.

    `wordings` are the case's own (`refusal_phrases`, and `acceptable` of an out-of-scope case); they count as
    declining the whole question wherever they stand, compared without case and white space. Total: every text has
    a reading, and one without a refusal wording (`""` too) does not decline.
    """
    evidence: str | None = None
    claimed = answered_after = False
    for clause in _clauses(answer, wordings):
        if clause.kind is _Kind.WHOLE or (clause.kind is _Kind.SIDE and not claimed):
            if evidence is None or answered_after:
                evidence, answered_after = clause.shown, False
        elif clause.kind is _Kind.CLAIM:
            claimed, answered_after = True, evidence is not None
    return Abstention(evidence is not None and not answered_after, answered_after, evidence)


def _clauses(answer: str, wordings: Sequence[str]) -> Iterator[_Clause]:
    """The clauses of an answer in order, each with its kind."""
    text = _masked(answer)
    own = _own_wordings(answer, wordings)
    for start, end, asks in _sentences(text):
        spans = [span for span in _pieces(text, start, end)]
        bodies = [_plain(text[a:b][:_READ_CHARS]) for a, b in spans]
        declared = [any(a < y and x < b for x, y in own) for a, b in spans]
        kinds = _kinds(bodies, declared, asks)
        for (a, b), kind in zip(spans, kinds, strict=True):
            yield _Clause(kind, answer[a:b].strip()[:_SHOWN_CHARS])


def _kinds(bodies: Sequence[str], own: Sequence[bool], asks: bool) -> list[_Kind]:
    """The kinds of one sentence's clauses; what stands alone as no kind is judged by its neighbours."""
    known = [_Kind.WHOLE if mine and not _found(_CONDITION, body) else _known(body) for body, mine in zip(bodies, own, strict=True)]
    alone = not any(known)
    kinds = []
    turned = listed = False
    for at, (body, kind) in enumerate(zip(bodies, known, strict=True)):
        lead = _compiled(_LEAD).match(body)
        turned = turned or bool(lead and lead["turn"])
        rest = body[lead.end() :] if lead else body
        if kind is None:
            goes_on = at + 1 < len(bodies)
            kind = _Kind.CLAIM if not asks and _claims(rest, alone, turned, goes_on, listed) else _Kind.FRAME
            listed = kind is _Kind.FRAME and at > 0
        if kind is not _Kind.FRAME:
            turned = False
        kinds.append(kind)
    return kinds


def _claims(body: str, alone: bool, turned: bool, goes_on: bool, listed: bool) -> bool:
    """Whether a clause of no known kind answers; `alone` when its sentence holds nothing of a known kind."""
    if not any(c.isalnum() or c == _MASK for c in body) or _found((_REASON, _LABEL), body):
        return False
    if goes_on and _found((_FRAME,), body):
        return False
    if alone or turned:
        return True
    return not listed and not _found((_ENUMERATION, _FRAME), body) and _found((_ASSERTION,), body)


def _known(body: str) -> _Kind | None:
    """The kind of a clause that a table knows, None where none does."""
    lead = _compiled(_LEAD).match(body)
    rest = body[lead.end() :] if lead else body
    if not _found(_CONDITION, rest) and not _found(_REPORTED, rest):
        for kind, table in ((_Kind.WHOLE, _WHOLE), (_Kind.SIDE, _SIDE)):
            refusal = next((m for group in table.values() for m in _matches(group, rest) if _refuses(m)), None)
            if refusal:
                side_point = _compiled(_SIDE_POINT).match(rest[refusal.start() :])
                return _Kind.SIDE if side_point else kind
    return _Kind.ASIDE if any(_found(group, rest) for group in _ASIDE.values()) else None


def _refuses(found: re.Match[str]) -> bool:
    """Whether a wording is the speaker's: not about what someone else cannot do, nor part of a rule's condition."""
    before, after = found.string[: found.start()], found.string[found.end() :]
    if _found((_SOMEONE,), before):
        return False
    return _found(("我", "<资料>"), before) or not _found((_RELATIVE,), after)


def _found(patterns: Sequence[str], text: str) -> bool:
    return any(_compiled(pattern).search(text) for pattern in patterns)


def _matches(patterns: Sequence[str], text: str) -> Iterator[re.Match[str]]:
    for pattern in patterns:
        yield from _compiled(pattern).finditer(text)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """A pattern of the tables with its `<NAME>`s filled in; compiled on first use, for a quick start."""
    return re.compile(_NAME.sub(lambda name: _VOCABULARY[name[1]], pattern))


def _plain(clause: str) -> str:
    """The clause as the tables spell it: NFKC, lower case, simplified characters, contractions written out."""
    text = unicodedata.normalize("NFKC", clause).replace("’", "'").lower().translate(_TRADITIONAL)
    for short, full in _SPELLED_OUT:
        text = short.sub(full, text)
    return text.strip(" .,!?\"'、*-")


def _masked(answer: str) -> str:
    """The answer, equally long, without what is not its own wording: reasoning, quotations, citations, markup."""
    start = answer.find("<think>")
    end = answer.find("</think>", start)
    if 0 <= start < end:
        answer = answer[:start] + " " * (end + 8 - start) + answer[end + 8 :]
    text = _QUOTED.sub(lambda q: q[0] if _is_whole_line(q) else _MASK * len(q[0]), answer)
    return _NOT_TEXT.sub(lambda m: " " * len(m[0]), text)


def _is_whole_line(found: re.Match[str]) -> bool:
    text = found.string
    return text[: found.start()].rpartition("\n")[2].strip() == "" and text[found.end() :].partition("\n")[0].strip(" .。") == ""


def _sentences(text: str) -> Iterator[tuple[int, int, bool]]:
    """Start, end and whether it asks, of each sentence."""
    start = 0
    for edge in _SENTENCE_END.finditer(text):
        yield start, edge.start(), "?" in edge[0] or "？" in edge[0]
        start = edge.end()
    yield start, len(text), False


def _pieces(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    at = start
    for edge in _CLAUSE_END.finditer(text, start, end):
        if text[at : edge.start()].strip():
            yield at, edge.start()
        at = edge.end()
    if text[at:end].strip():
        yield at, end


def _own_wordings(answer: str, wordings: Sequence[str]) -> list[tuple[int, int]]:
    """Where the case's own wordings stand in the answer; letters do not begin inside a longer word."""
    folded = [(c, at) for at, char in enumerate(answer) for c in _fold(char)] if any(wordings) else []
    text = "".join(c for c, _ in folded)
    spans = []
    for wording in filter(None, (_fold(w).strip("。.!！,，;；") for w in wordings)):
        at = text.find(wording)
        while at >= 0:
            first, last = folded[at][1], folded[at + len(wording) - 1][1]
            before = answer[first - 1 : first]
            if not (before.isascii() and before.isalnum() and wording[0].isascii() and wording[0].isalnum()):
                spans.append((first, last + 1))
            at = text.find(wording, at + len(wording))
    return spans


def _fold(text: str) -> str:
    return "".join(unicodedata.normalize("NFKC", text).replace("’", "'").casefold().split())
