"""The wordings by which `refusals` reads an answer: tables of patterns in named groups of meaning.

No reading here, only words. A group is `group = pattern`, or its patterns one a line below its name; a line that is
indented further goes on where the line above stopped. `<NAME>` in a pattern stands for the pattern of that name in
`VOCABULARY`. English is matched in lower case with contractions written out, Chinese in simplified characters.
"""

from __future__ import annotations


def table(text: str) -> dict[str, tuple[str, ...]]:
    """Group -> its patterns."""
    groups: dict[str, list[str]] = {}
    patterns: list[str] = []
    for line in text.splitlines():
        if line.startswith("     "):
            patterns[-1] += line.strip()
        elif line.startswith(" "):
            patterns.append(line.strip())
        elif line and not line.startswith("#"):
            name, _, pattern = line.partition(" =")
            patterns = groups.setdefault(name, [pattern.strip()] if pattern else [])
    return {name: tuple(patterns) for name, patterns in groups.items()}


# --- words that the wordings are made of; `<NAME>` in a pattern stands for the pattern of that name ---
VOCABULARY = table(r"""
# what an answer calls its contexts; no word that a knowledge base is *about* (file, plan, database)
SOURCE = (?:(?:doc(?:ument)?s?|documentation|contexts?|passages?|texts?|sources?|materials?|excerpts?|snippets?
        |articles?|extracts?|chunks?|hits|handbook|manual|guide|pages?|sections?|references?|content|knowledge base
        |results|information|our records)\b|(?:provided|given|retrieved) (?:data|files?)\b)
# these rule over matters themselves ("the policy does not cover floods"): only that they do not say is a refusal
PAPER = (?:polic(?:y|ies)|contract|agreement|terms|regulations?|rules|guidelines?|reports?|files?|index|data|records?)\b
TELL = (?:mention|specif(?:y|ie)|state|say|tell|address|discuss|describe|explain|indicate|detail|clarify|elaborate|touch
        |deal|speak|talk|refer|answer|define|disclose|go into)(?:es|s)?\b
HOLD = (?:contain|include|provide|cover|have|give|list|offer|show|present|appear|confirm|support)s?\b
TOLD = (?:mentioned|specified|stated|addressed|discussed|explained|indicated|detailed|clarified|disclosed|spelled out)\b
HELD = (?:defined|described|documented|listed|covered|included|provided|available|found|given|present|part of)\b
FACTS = (?:info(?:rmation)?|details?|data|answers?|mention|references?|guidance|specifics|context|content|documents?
        |documentation|passages?|sources?|results?|match(?:es)?|evidence|materials?|knowledge|entry|records?)\b
ADJ = (?:(?:any|enough|sufficient|relevant|specific|the|that|this|such|related|clear|direct|detailed|an?|further|of
        |exact|additional|more|other|requested|useful|reliable|matching|kind) ){0,5}
VERB = (?:answer|determine|find|say|tell|locate|identify|infer|conclude|establish|respond|judge|work out|know|provide
        |give|offer|share|disclose|reveal|discuss|help|assist|access|advise|retrieve)\b
WAS = (?:(?:does|is|are|was|were|has|have|been|could|can|be) ){0,3}
YOU = (?:please |kindly |consider |try |(?:you|one|i|we|it) (?:\w+ ){1,4}?)?
ELSEWHERE = (?:\bhr\b|human resources|support|service|web ?site|official|\bdoc|manager|team|admin|handbook|source|help
        |expert|advis[eo]r|department|directly|elsewhere|other|online|polic(?:y|ies)|authorit|company|again)
资料 = (?:资料|文档|文件|上下文|知识库|材料|文本|段落|片段|节选|手册|(?:检索|搜索|查询)(?:到的)?结果|文章|档案|数据库
        |来源|原文|文[中里献]|(?:库|系统)[中里]|(?:提供|给出|给定|已知|检索到|现有)的?.{0,4}(?:信息|内容|数据)|以上
        |上述)
料 = (?:信息|资[讯料]|内容|数据|规定|说明|记[录载]|依据|描述|答案|介绍|文[档件]|材料|条款|结果|条目|细节|知识|数[字值])
细 = (?:明确|具体|直接|详细|专门|进一步|特别|清楚|完整|充分|任何|足够|相[关应]|有关|对应|准确|可靠|有效|可用|匹配|确切
        |类似|[这此该]方面|[这此]类|更多|其[他它]|[此该这的地到过出有能给对了作做予]|一?个|您?[所要需想]){0,5}
说 = (?:提[及到]|涉及|说明|指出|[写列注载标]明|介绍|描述|讨论|阐述|谈[及到]|解释|交[代待]|[讲说写]到|[提讲]过)
载 = (?:提供|包[含括]|给出|规定|记[录载]|公布|披露|明确|[覆涵]盖|收录|列|约定|[写说讲提含有]|显示|体现|定义|回答)
不 = (?:无法|不[能便]|没法|难以|未能|没能|没有?办法|无从)
未 = (?:[并尚均都也还暂]?未[能曾]?|没有|没能|没)
无 = (?:没有?|[暂并尚均也毫]?无|缺[乏少])
""")

# --- the question is declined ---
WHOLE = table(r"""
cannot answer =
    \b(?:i|assistant) can not(?: (?!confirm|verify|guarantee|be )|$)|^can not (?:be )?(?:<VERB>|determined|answered)
    \bwe can not (?:answer|determine|find|say|tell)\b|^(?:i|we)\b.{0,80} and (?:can not|did not|found no)
    \bcan not be (?:answered|determined|inferred|deduced)\b(?! (?:until|before|after))
    \b(?:(?:answer|question|information|this|it) can not be (?:found|located)\b|can not be (?:found|confirmed) (?:in
        |from|by|with) .{0,30}<SOURCE>)
    \b(?:is|be) (?:not possible|impossible) (?:for me )?to (?:answer|determin|say)
do not know =
    \bi (?:do|did) not know\b
    \b(?:beyond|outside) (?:my|what (?:i|(?:the|these) .{0,20}<SOURCE>))\b
    \bi (?:am|was) (?:not (?:aware|familiar)|unaware)\b
    ^(?:no idea|not sure|none found|unknown|n/?a|not found)$
no information =
    \bi (?:do|did|have|am|was) not (?:have|possess|given|provided|see|seen|seeing|find|found|finding|located?
        |been (?:given|provided))\b
    \bwe (?:do|did|have) not (?:have|find|found) <ADJ><FACTS>|\b(?:i|we) (?:lack|have no) <ADJ><FACTS>
    \bi (?:have|see|saw|find|found|can find|can see) (?:no|nothing|none)\b|^found (?:no|nothing)\b
    \bthere <WAS>(?:no|not any|nothing) ?<ADJ>(?:<FACTS>)?(?: <HELD>)?(?: (?:in|within|from) .{0,40}<SOURCE>)?$
    ^(?:based on|given|due to)?.{0,30}\b(?:insufficient|not enough|lack of|limited) <ADJ><FACTS>(?:$| (?:to|in|available
        |provided)\b)
    <SOURCE>.{0,40} <WAS>(?:insufficient|not (?:sufficient|enough|related|relevant)|inadequate|unrelated|irrelevant)
    \bno (?:relevant|matching|related|such) ?<ADJ><FACTS>(?:$| <WAS>(?:found|available|returned|about|on|in|to|that)\b)
    ^no <ADJ><FACTS>(?:$| <WAS>(?:found|available|returned|provided|given)(?:$| (?:in|for|on|about|regarding|that)\b))
    \b(?:search|query|system|knowledge base) .{0,20}(?:(?:returned|found) (?:no|nothing)|did not (?:return|find
        |match))\b
out of scope =
    \b(?:outside|beyond|out of|not within) (?:the |my |our |its )?(?:\w+ )?(?:scope|range|domain|coverage|expertise)(?:$
        |.{0,20} of (?:(?:the|these|our|what) )?(?:<SOURCE>|provided|available|this|my|i\b|assistant|knowledge))
    \bi (?:can|am )?.{0,16}(?:only|limited to|restricted to) (?:able|help|answer|assist|know|questions)
        |\bnot something (?:that )?(?:i\b|.{0,20}(?:<SOURCE>|<PAPER>))|\bno way (?:to|of) (?:know|tell|say)
may not tell =
    \bi (?:am|was) not (?:authori[sz]ed|allowed|permitted)\b|\bi would (?:rather not|need (?:more|the))\b
        |\bi need more\b
    \bi (?:(?:will|would|should|must|do) not (?:(?:want|wish) to )?(?:answer|share|disclose|provide|guess)
        |(?:must |have to )?decline)\b
    \byou(?:r (?:account|role))? (?:do(?:es)? not have|are not (?:authori[sz]ed|permitted|allowed)|lack) .{0,40} (?:this
        |that|the requested|these|other|another)\b
    \b(?:other|another|this|that|such|requested)\b.{0,40} (?:(?:can|may|must) not be (?:shared|disclosed)
        |is confidential)
无法回答 =
    <不>(?:[为向给对]您|对此|[从根就在].{1,14}|[做作给得]出|进行|得到|提供){0,3}<细>(?:[回解]答|答复|作答|确定|判断
        |得[知出]|获[知取]|知[道晓]|推[断测]|[查找搜]到|(?:查询|检索|搜索)到|支[持撑]|答案|结论)
    <不>(?:[为向给]您)?<细>(?:提供|给出|获得|查询|查看|告[知诉])<细>.{0,24}(?:<料>|建议|帮助|服务|您)
    <不>(?:[为帮给][您你]|(?:帮助|协助|处理)[您你这该此])|[帮答]不[了上]|回答不了|拒绝回答|无从[得知判回查考确]|不得而知
    (?:[找查搜拿]|查询|检索|搜索)不[到着]<细>(?:$|[您你]|.{0,24}<料>)
    <未><细>(?:[找查搜]到?|[看见]到|检索到?|搜索到?|查[询找]到?|获[取得]|发现|匹配)<细>(?:$|它|这|.{0,24}<料>$|<料>
        |(?:关于|有关|[与和跟对]|可|包含|提[及到]).{0,24}$)
    (?:答案|问题|信息|结果).{0,6}(?:[找查]不到|[未没]找到|不存在)|查无|(?:检索|查询|搜索)(?:结果)?(?:为空|无果|无结果
        |<未>返回)
不知道 =
    ^(?:抱歉|[对就]?此|[对关]于这.{0,8}|[这那该]个?|问题|方面|情况|具体|目前|暂时?|我们?|小?助手|[也都并还尚的真]|确实
        |实在){0,5}(?:不太?|完全不)(?:是?很|太)?(?:知[道晓]|清楚|了解|掌握|明白|熟悉)(?:$|[这该此您答具相关情问])
    我.{0,12}不(?:知道|清楚|了解|掌握|知情)(?!的)|(?:助手|我).{0,8}(?:没有?|无)<细>.{0,24}<料>
没有信息 =
    <无>(?:足够|相[关应]|有关|[这此该]方面|[这此]类|对应|匹配|可用|有效|可供|充[足分]|更多|符合|任何|此
        |能)<细>(?:(?:回答|支[持撑]|参考).{0,10}的)?(?:<料>|提及)(?!会|将|被|需|要|须|泄|丢)
    (?:^|<资料>[中里内]?)[暂并也]?(?:没有|无|暂无)(?:信息|资料|内容|数据|结果|记录)$|[没暂尚]有?无?(?:确切
        |明确)?的?答案$|答案.{0,4}(?:未知|不明|不详)
    (?:信息|资料|内容|上下文|数据)(?:并不|尚|仍|明显)?(?:不[足够]|不充分|有限|缺[失乏])
    不足以(?:[回解]答|支[持撑]|判断|确定|得出|推|[给作]出)|<资料>.{0,20}[与和跟].{0,24}(?:无关|不相关)
超出范围 =
    ^超出.{0,4}范围$|(?:[超越]出|超过|不在|不属于)了?.{0,6}(?:我|助手|知识库?|资料|文档|[回解]答|上下文
        |职责).{0,10}(?:范围|范畴|能力|[之以]外|[中内里]$)
    ^(?:抱歉)?.{0,6}(?:[该此这本]个?|您的?)(?:问题|提问|内容|请求|话题).{0,6}(?:超[出过]|不在|不属于).{0,12}(?:范围|范畴
        |权限)
    [只仅](?:能|可|负责|支持)?(?:根据.{0,16})?(?:为您)?(?:[回解]答|提供|处理)(?:[与和跟]|关于|有关).{0,30}(?:问题|咨询
        |信息|内容)
不能透露 =
    (?:<不>|不[得会予宜]|不可以?|无权|不方便|没有权限|恕[不难])(?:[为向]您|对外|直接)?(?:透露|披露|泄露|提供|告知|访问
        |查[看询]|获取)<细>(?:其[他它]|别的|[他别]人|另|隐私|保密|机密|内部|[这此该相有].{0,4}(?:信息|内容|数据|资料
        |租户|客户))
    (?:我|助手)[也并]?(?:无权|没有权[限利]|未[被获]授权)[访查看透提披告获回]|您(?:的账[号户])?(?:无权
        |没有.{0,10}权限?).{0,8}[该此这其相]
    ^(?:很?抱歉|我)?(?:(?:无权|没有权限|无可奉告|恕不)|<不>(?:提供|透露|告[知诉])$)|^(?:很?抱歉)?(?:[该此这]
        |相关).{0,6}(?:信息|数据|资料).{0,8}(?:[保机]密|隐私)|涉及(?:其[他它]|他人)
""")

# --- the documents are silent, or the speaker hedges ---
SIDE = table(r"""
documents do not say =
    (?:<SOURCE>|<PAPER>|\b(?:it|they|this|these|those|none|neither|nothing|which)\b).{0,60}? (?:(?:do|does|did|has
        |have) not|never)(?: <TELL>| <TOLD>| said)|^(?:(?:does|did) not|never) (?:<TELL>|<HOLD>)|^not (?:what|how|when
        |whether|who|why)\b|<SOURCE> neither\b|^do not (?:mention|specify|address|contain|cover)\b
    <SOURCE>.{0,60}? (?:do|does|did) not <HOLD>|\bi do not (?:think|believe) .{0,40}<SOURCE>|\b(?:it|they|these
        |those) (?:do|does|did) not <HOLD> <ADJ><FACTS>
    (?:<SOURCE>|<PAPER>).{0,60}? (?:lacks?|omits?|fails? to|makes? no|(?:is|are) silent|(?:<TELL>|<HOLD>|has)(?: nothing
        | (?:no|neither|little) ?<ADJ><FACTS>))|<SOURCE> <HOLD> no\b
    \b(?:none|neither|nothing|nowhere) (?:of|in|within|from) (?:.{0,40}(?:<SOURCE>|<PAPER>)|(?:them|these|those
        |which) (?:<TELL>|<HOLD>))|\bnothing (?:is|was) (?:said|<TOLD>)|^(?:none|neither|nothing)(?: \w+){0,3}(?: <TELL>
        | <HOLD>)|^no (?:\w+ )?(?:<SOURCE>|<PAPER>) .{0,20}?(?:<TELL>|<HOLD>)
    \b(?:no|without|not any) <ADJ>(?:<FACTS>|word) (?:<HELD> )?(?:of|about|on|regarding|concerning|relat\w+|as to
        |to answer|that|whether|specific|in .{0,30}<SOURCE>)(?!.{0,40} <WAS>(?:shared|sold|stored|collected|lost|deleted
        |required|needed|kept|sent)\b)
    \bthere <WAS>(?:no|not any|nothing) ?<ADJ>(?:<FACTS>)? ?(?:here )?(?:about|on|regarding|concerning|provided|given
        |(?:\w+ ){1,3}(?:provided|given|mentioned|specified|(?:in|from) .{0,20}<SOURCE>))\b
is not mentioned =
    (?:^|(?<!\w that )(?<!which )(?<!who )\b(?:is|are|was|were|be|been) )(?:not|nowhere|never) (?:be(?:en)? )?<TOLD>
    (?:^|\b(?:is|are|was|were|been) )not (?:explicitly|specifically|directly|clearly) (?:<HELD>|<TOLD>)
    (?:^|(?<!\w that )(?<!which )(?<!who )\b(?:is|are|was|were|be|been|does|do) )(?:not|nowhere) (?:appear )?(?:<HELD> )
        ?(?:anywhere )?(?:in|by|within|from|on|among) .{0,30}(?:<SOURCE>|the provided|the given)|\b(?:missing
        |absent) from .{0,30}<SOURCE>
    (?:\b(?:its|the|their|whose) (?:\w+ )?(?:text|contents?|body|wording)|<FACTS>(?: (?:(?!that
        |which).){0,60})?) (?:itself )?(?:is|are|was|were) (?:not <HELD>|missing|unavailable)|<FACTS> not <HELD>
    \b(?:(?:it|this|that) (?:is|remains) (?:unclear|not clear|unknown|unspecified)(?! (?:for|as|to)\b)|(?:un
        |not )clear (?:from|in|based))\b
    \bi (?:am|was) (?:not (?:sure|certain|confident)|unsure|uncertain)\b|\b(?:i|we) can not (?:confirm|verify
        |guarantee)\b
资料未提及 =
    <未><细><说>|<资料>.{0,24}?(?:<未>|[并均也都]?不)<细><载>|[不未]在.{0,4}<资料>(?:$|[之中内里])|^(?:未知|不详
        |[暂尚]不明确)$|只字未提|不好说|说不[准好清]|[尚还并]不清楚|需要(?:更多|完整).{0,6}(?:信息|资料|上下文|合同)
    <资料>.{0,20}?(?:没有?|并无|无|不[含存]|缺[少乏]|[找看]不[到出]|未见)(?!.{0,3}(?:限制|手续费|费用))
    <未><细>(?:提供|包含|给出|规定|记[录载]|公[布开]|披露|列出|收录|[涵覆]盖)(?:$|<细>.{0,30}<料>)
    ^.{0,10}<未>(?:明确|具体|详细)的?(?:给出|列出|提供|规定|约定|指定|[写说标])
    (?:<无>|不[含存涉]在?|不包[含括])(?:任何|具体|明确|详细)?(?:关于|有关|针对|涉?及|说明|介绍|描述|与.{1,20}[相有]关)
    <无>(?:任何|具体|明确|详细|确切|其他|进一步)的?<料>(?!会|将|被|需|要|须|泄)|^(?:暂无|暂时没有|目前没有
        |尚无)<细>.{0,12}$
    ^(?:.{0,8}(?:我|这|此|目前|暂|也|抱歉))?(?:不太?|并不|不敢|<不>)(?:完全|十分|很)?(?:确[定认]|肯定|保证
        |核实)(?!的(?!$))
    <不>(?:进一步|直接|准确|[从根].{0,12})?(?:确认|核实|证实|保证)
""")

# --- what neither answers nor declines ---
ASIDE = table(r"""
courtesy and offers =
    ^(?:i am |i )?(?:sorry|apolog|afraid|regret|hope|appreciate|thank|understand)|^(?:hello|hi\b|sure$|(?:great
        |good) question|(?:your|the|this) question (?:is|asks))
    ^(?:please )?(?:do not hesitate|feel free|let me know|is there anything)
    ^(?:i|we) (?:can|could|will|would|may|am) (?:(?:then|try|gladly|always|be) ){0,2}(?:happy|glad|help|assist|look
        |search|check|try|offer|point|give you|answer|direct)
    ^(?:if|should|once) (?:you|there|it|that|this|the) .{0,30}(?:have|need|can|could|like|want|provide|share|tell
        |clarify|give|other|know|send|wish)
    ^(?:非常|很|十分|实在|真的|深感)?(?:抱歉|对不起|不好意思|遗憾|感谢|谢谢)|^(?:[您你]好|亲|好的$|尊敬的|[祝愿]|希望
        |我?(?:理解|明白))|^(?:[您你]|用户)(?:的问题|询问|咨询|问|想[了知])
    ^(?:我们?|本助手)?(?:可以|[会能将再便也很就才]|很?乐意|愿意|随时|尽力){1,3}(?:继续|尽[力量]|进一步)?(?:帮|协助
        |[为给][您你]|根据|提供|解答|尝试|查|重新)
    ^(?:欢迎|期待|随时|是否还|还有[什其]|仅?供|敬请|还请|以便)|其[他它]问题|告[诉知]我
advice to look elsewhere =
    ^<YOU>(?:contact|consult|reach(?:ing)? out|get in touch|refer(?:ring)? to|[ie]nquir|speak|talk|rephras|clarify
        |try (?:rephras|again|ask|search|a (?:more|diff)|check|contact|another)|(?:raise|open|submit|file
        |log) an? (?:\w+ )?(?:ticket|request|case))
    ^<YOU>(?:check|see|visit|look|review|ask|call|email|search|verify|confirm|seek|find (?:this|that|it|more
        |the))(?:ing)?\b.{0,60}<ELSEWHERE>
    ^<YOU>(?:provide|share|upload|give|specify|send)\b.{0,40}\b(?:more|further|context|document|passage|details
        |information|text|me|question)
    ^(?:.{0,12}<ELSEWHERE>|someone|they|it|that|this|the (?:answer|information)).{0,40} (?:can|could|may|might|should
        |will)(?: be)?(?: \w+)?(?: able| help| assist| answer| know| confirm| in another| elsewhere| covered| found)
    (?:^|请|建议|可以?|需要?|应|最好|推荐|麻烦|直接|或者?|[并再您你]).{0,10}?(?:联系|咨询|拨打|查阅|参[考阅照]|询问
        |问[问一]|请教|访问|致电|打.{0,6}电话|提交?工单|反馈|换一?个|重新(?:提问|描述|表述|输入|检索)|补充|提供(?:更
        |相关|具体|进一步|完整|其他|上下文|资料|文档|材料)|上传|核实|查[询看找]|搜索|了解|获取|确认(?:$|一下|相关))
    以.{0,24}为准|由.{0,16}(?:解答|确认|答复|处理)|(?:转|接入).{0,4}人工
remark on the documents =
    (?:<SOURCE>|<PAPER>|\b(?:they|it|these|which)|^the (?:\w+ )?(?:section|chapter|title|heading)) .{0,40}?\b(?:only
        |mainly|primarily|mostly|merely|just|instead)\b|^(?:only|just|mainly) (?:<TOLD>|<TELL>|<HOLD>|the )
    ^(?!.*\b(?:that|as|is|are|can|must|(?!(?:19|20)\d\d)\d+)\b).{0,30}(?:<SOURCE>|<PAPER>|they|it
        |these) (?:\w+ )?(?:discuss|describe|cover|focus|list|mention|address|contain|include|deal|talk|refer|outline
        |relate|provide|explain)(?:e?s|ed)?\b
    <SOURCE>.{0,30} (?:is|are|was|were) (?:all |mainly |only )?(?:about|related to|limited to|focused on
        |concerned with)\b
    ^(?:(?:i|we) (?:have )?|(?:after|having|upon|by) (?:\w+ )?)(?:search|review|check|look|examin|read|consult)
    (?:只是?|仅仅?|主要|大多|都是|均为|大部分|集中|围绕|局限).{0,8}(?:<说>|<载>|列|讲|谈|关于|围绕|针对|标题|目录
        |[涉在是有限])
    ^(?!.*(?:为|是(?!关于)|可以|需|应|必须|\d)).{0,8}<资料>.{0,12}(?:介绍|描述|讨论|讲述|涉及|列出|包[含括]|涵盖
        |提[到及]|说明|关于|[讲谈])
    ^(?:我|已|经|通过|在)(?:已|们|为您|仔细|[对过在从]){0,3}.{0,12}(?:查阅|检索|查询|搜索|查找|核对|梳理|分析|浏览)
""")

# --- what keeps a wording from being a refusal, and what a clause without a kind may be ---
SIGNS = table(r"""
# without one of these no wording stands in a clause: spares the search
hint = no[tnr]|\bno\b|none|neit|never|n/a|\b(?:un|ins|ina|irr|imp|lack|fail|omit|sile|witho|beyo|out|only|limit|restr
        |conf|decl|hard|diff|miss|abs|need)|[不未没无缺超只仅恕欠限空涉属查保隐需]
# "if the limit is not specified, the default holds": the clause asserts nothing
condition = ^(?:如果|如(?!下|上|此)|若|假如|要是|倘若|一旦|除非|凡|当)|^(?!.*(?:是|我|问题)).*(?:时|者|的话|的|后|前)$
reported =
    \b(?:message|error|screen|api|server|command|status|log)\b.{0,20} (?:says?|shows?|reads?|displays?|returns?|means)\b
    (?:系统|页面|屏幕|界面|接口|程序|设备).{0,10}(?:提示|显示|报错|返回)
# who else cannot, does not know, has not provided; looked for just before the wording
someone =
    (?:用户|[员职]工|[客顾]客?户?|[您你]们?|商[家户]|[买卖]家|会员|申请人|学[生员]|管理员|[访游]客|经理|主管|客服|机器人
        |乘客|租户|账[户号]|第三方|任何人|[其他]他?[人们]|[他她]|对方|门店|成员|人员|者|方|公司|企业|平台|银行
        |部门)(?![的所提询咨想问要面案])[^,的]{0,4}$
    \b(?:if|unless|whenever|in case|when (?:an?|no|the|it|you|any))\b
# 未提供发票的不予报销; looked for just after the wording
relative = ^[^,]{0,12}的[^,]{0,16}(?:将|会|须|应|可|一律|视为|不予|不得|按|则|转|必须|需|请|不能)
side point = ^.{0,40}\b(?:further|additional|more|exact|precise|other details)\b|^.{0,14}(?:更多|其[他它余])
# a reason, or a label before the colon
no claim =
    ^(?:because|since|as\b|due to|given that|因为|由于|鉴于|原因)
    ^(?:(?:final )?answer|response|note|summary|conclusion|reason|sources?|references?|question|a|q)$
    ^(?:最终)?(?:答案?|回答|结论|说明|注意?|原因|来源|参考(?:资料|来源|文献|文档)?|总结|问题?|(?:温馨)?提示)$
frame =
    ^(?:for|to|in|from|based on|according to|given|regarding|about|as for|as an?|with|without|at|on|under|of|after
        |before|despite|if|when|where|including|having|unless|should|once)\b
    ^(?:关于|对于?|根据|依据|基于|从|在|就|按照?|针对|作为|结合|如果?|若|当|除了|至于|有关|以|因|通过|截至|除此之外)
enumeration =
    ^(?:which|who|whose|what|how|whether|why|or|nor|including|such as|any|not|only|as well as)\b
    ^(?:以及|和|或|及|与|还是|包括|例如|比如|如|甚至|尤其|特别是)|是否|何时|如何|怎[么样]|多[少久]|哪|谁|什么|为何|几
assertion =
    ^(?:yes|no|nope|correct|generally|usually|typically|often|probably|i (?:think|believe|guess))\b
    ^(?:(?!\b(?:that|which|who|whose|where|when|how|whether|what|why)\b).){1,80}?\b(?:is|are|was|were|can|may|might|must
        |should|will|would|has|have|costs|takes|lasts|requires|needs|gets?|does|do)\b
    ^(?:一般|通常|大[概约]|约|估计|我[觉认猜]|据我|多数|大多|不)|免费|收费|[是为可能会需应须要有由将已达按]|支持|允许
        |不得|在|\d
""")

# --- where text is cut, and what is none ---
MARKS = table(r"""
# how a clause leans on the one before it; `turn`: it opposes or concludes
lead = (?:(?P<turn>(?:but|however|(?:even |al)?though|nevertheless|that said|yet|still|whereas|while|instead|so
        |therefore|thus|hence|consequently|(?:which |this |that )means|meaning|then)\b|但是?|不过|然而|可是|只是|而|却
        |尽管如此|因此|所以|故|因而|于是|那么|这意味着|也就是说|可见|虽然?|尽管)|(?:and|also|additionally|in addition
        |moreover|or|alternatively|otherwise|for now|perhaps|maybe|overall|in summary|in conclusion|unfortunately
        |regrettably)\b|同时|并且?|且|另外|此外|总之|综上(?:所述)?|目前|也|还)[ ,]*
quote = "[^"\n]{1,200}"|“[^“”\n]{1,200}”|「[^「」\n]{1,200}」|`[^`\n]{1,200}`
not text = (?m)[\[【][^\[\]【】\n]{0,40}\d[^\[\]【】\n]{0,20}[\]】]|\]\([^()\s]{0,300}\)|\*\*|[#>]+ |https?://\S+
        |[(（](?:(?!\b(?:but|not?|usually)\b|[但未无没一通])[^()（）\n]){0,80}[)）]|^[ \t]*(?:[-*•+>]
        |\d{1,2}[.)、])[ \t]+
sentence end = [。！？!?；;\n…]+|(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)(?<!\bapprox)(?<!\b[DM]r)[.．](?=[\s"”)\]]|$)
clause end = (?i)，|(?<!\d),|,(?!\d)|[:：](?!\d)|[()（）]|\s[-–—]+\s|[—–]+|(?<=\s)(?=(?:but(?! also)|however|though
        |because|(?:so|and) (?:i|we|it|you|they|there))\b)|(?=(?<![不非])但(?![凡书])|然而|[因所][此以为]|[并而]且)
""")

# --- what is written in its place before anything is compared; "--" for adverbs that change nothing ---
SPELLED_OUT = table(r"""
will not = \bwon'?t\b
not = n't\b|(?<=\bis|\bdo)nt\b|(?<=oes|did|uld)nt\b
i am = \bi'?m\b
have = 've\b
would = '(?:ll|d)\b
is = (?:(?<=hat|ere)|(?<=\bit))'s\b
-- = \b(?:also|currently|really|actually|just|simply|honestly|still|therefore|fully|yet|definitively|accurately|reliably
        |completely|even|all|at this time|at the moment|quite|properly|further|(?<=do not |es not |id not )(?:explicitly
        |specifically|directly|clearly)|(?<=not )(?:seem|appear) to(?: be)?|(?:seems?|appears?) to be)\b
can not =
    \b(?:ca not|cant|cannot)\b
    \b(?:(?:am|are|is|was|were|been|be|remain) )?(?:unable|not (?:been )?able|not in a position) to\b
    \b(?:could|would|will|may|have|has) (?:not (?:be )?can|can not)\b|\bcould not\b
""")
