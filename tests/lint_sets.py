"""An eval set without a weakness, in Chinese and English, with the knowledge base that it is about."""

from pathlib import Path
from typing import Any

from tests.eval_sets import write_rows

# chunk, heading, text, question, key points (| between the wordings of one); a tenant before the question
FACTS = """
rent#1 ; 租车 > 押金 ; 首次用车前须交押金 199 元，退出后三日内原路退回。 ; 头一回骑要先压多少钱？ ; 199 元
rent#2 ; 租车 > 计费 ; 每半小时 1.5 元，单日封顶 18 元。 ; 骑一整天最多扣我多少？ ; 18 元
rent#3 ; 租车 > 年龄 ; 年满 16 周岁方可注册，未满者由监护人代办。 ; 我家孩子要多大才能自己开户？ ; 16 周岁|十六岁
rent#4 ; 租车 > 还车 ; 须停入蓝色框线内，停在框外加收 12 元调度费。 ; 随手扔路边会罚多少？ ; 12 元
rent#5 ; 租车 > 故障 ; 车辆无法骑行时扫码报修，当次费用全免。 ; 骑到一半链条断了，这趟还收钱吗？ ; 全免|免费
rent#6 ; 租车 > 遗失 ; 车辆丢失须在 24 小时内报案，凭回执免赔。 ; 车被偷了得赶在什么时候去派出所？ ; 24 小时
card#1 ; 月卡 > 价格 ; 月卡售价 39 元，含 60 次骑行。 ; 办一个月的套餐能骑几回？ ; 60 次
card#2 ; 月卡 > 转让 ; 月卡不可转让，亦不可分给家人使用。 ; 我用不完，能给老婆用剩下的吗？ ; 不可转让
card#3 ; 月卡 > 暂停 ; 每张月卡可暂停一次，最长 15 天。 ; 出差去外地，月卡能先停多久？ ; 15 天
card#4 ; 月卡 > 退款 ; 购买后 48 小时内未使用的，可全额退回。 ; 刚买就后悔了，还没骑过，多久以内能全退？ ; 48 小时
card#5 ; 月卡 > 学生 ; 在校学生凭学信网验证享六折。 ; 读大学的人买有什么优惠？ ; 六折|6 折
site#1 ; 站点 > 营业 ; 人民广场服务点每天 7 点至 21 点有人值守。 ; 人民广场那边最晚几点还有人？ ; 21 点
site#2 ; 站点 > 头盔 ; 各服务点可免费借用头盔，逾期每天收 3 元。 ; 借的安全帽忘了还，一天要交多少？ ; 3 元
site#3 ; 站点 > 打气 ; 打气筒放在服务点门口的黄色柜子里，密码 7042。 ; 轮胎瘪了，柜子怎么打开？ ; 7042
site#4 ; 站点 > 冬季 ; 十二月至次年二月停用沿江路的四个站点。 ; 天冷的时候江边哪些地方不能还？ ; 沿江路
staff#1 ; 员工 > 制服 ; 巡检员每季度发两套制服，离职时须交还。 ; 路上巡逻的同事多久领一次衣服？ ; 每季度
staff#2 ; 员工 > 夜班 ; 夜班补贴每次 85 元，随当月工资发放。 ; 值一次通宵给多少？ ; 85 元
staff#3 ; 员工 > 工伤 ; 受伤后须在 2 小时内电话告知主管杜若溪。 ; 在外面摔了，该先打给谁？ ; 杜若溪
fleet#1 ; Fleet > Batteries ; Electric bikes are charged at 20 percent and leave the depot with 95 percent. ;
    When is an e-bike taken in to be plugged in? ; 20 percent|20%
fleet#2 ; Fleet > Brakes ; Brake pads are replaced after 2,400 km or when thinner than two millimetres. ;
    How far can pads go before somebody swaps them? ; 2,400 km|2400 km
fleet#3 ; Fleet > Cleaning ; Every vehicle is washed each fortnight; after storms the mudguards come first. ;
    How often do they get a wash? ; fortnight
fleet#4 ; Fleet > Retirement ; Frames are scrapped after six years, and bells go to the school workshop. ;
    What happens with old bells? ; school workshop
app#1 ; App > Sign-in ; Six digits arrive by text message and stay valid for 4 minutes. ;
    My code stopped working, how long was it good for? ; 4 minutes|four minutes
app#2 ; App > Groups ; One account may unlock up to 5 bicycles at once. ;
    Can I take my whole family of four along, or is there a limit? ; 5 bicycles|five bicycles
app#3 ; App > Invoices ; Receipts can be downloaded for 18 months, later ones on request. ;
    I need a bill from last year; how far back does the download go? ; 18 months
app#4 ; App > Complaints ; Disputed trips are reviewed by Marta Voss within 9 working days. ;
    I was charged wrongly. Who looks at it? ; Marta Voss
"""
TENANT_FACTS = """
north#1 ; 客户 > 北港 > 合同 ; 北港物业包车 320 辆，合同到 2028 年 5 月。 ; north ; 我们一共包了几辆？ ; 320 辆
north#2 ; 客户 > 北港 > 折扣 ; 北港物业按刊例价的八三折结算。 ; north ; 我们这边按几折付钱？ ; 八三折
north#3 ; 客户 > 北港 > 联系人 ; 北港物业的对账人是贺知秋。 ; north ; 每个月跟你们核对账目的是哪位？ ; 贺知秋
south#1 ; Customers > Southgate > Contract ; Southgate Mall pays 41 cents a trip and renews in March. ;
    south ; What does one ride cost us? ; 41 cents
south#2 ; Customers > Southgate > Docks ; Southgate Mall has 26 docks, two of them with chargers. ;
    south ; How many docks stand at our doors? ; 26 docks
south#3 ; Customers > Southgate > Service ; A mechanic visits Southgate Mall every second Tuesday. ;
    south ; On which day does your mechanic come by? ; Tuesday
"""
REFUSALS = """
- ; 你们在海南有没有分公司？
- ; 能不能用比特币充值？
- ; 明年会涨价吗？
- ; Do you rent out rowing boats?
- ; Is the founder married?
north ; Southgate 商场一趟付你们多少？
south ; What discount does the Northport property firm get?
south ; 北港物业那边是谁在管账？
"""


def clean_set() -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    """The cases c01 … c40 and the chunks, each by id."""
    cases: list[dict[str, Any]] = []
    chunks: list[dict[str, Any]] = []
    for line in (FACTS + TENANT_FACTS).replace("\n    ", " ").strip().split("\n"):
        if not line:
            continue
        chunk, heading, text, *tenant, question, points = line.split(" ; ")
        chunks.append({"id": chunk, "heading": heading, "text": text, **({"tenant": tenant[0]} if tenant else {})})
        case = {"type": "fact", "question": question, "relevant_docs": [chunk], "must_include": [points.split("|")]}
        cases.append(case | {"expect_refusal": False} | (_of_tenant(tenant[0]) if tenant else {}))
    for line in REFUSALS.strip().splitlines():
        tenant_name, question = line.split(" ; ")
        foreign = {} if tenant_name == "-" else _of_tenant(tenant_name) | {"red_line": True}
        cases.append({"type": "refusal", "question": question, "expect_refusal": True} | foreign)
    named = {f"c{number:02}": {"id": f"c{number:02}"} | case for number, case in enumerate(cases, 1)}
    return named, {chunk["id"]: chunk for chunk in chunks}


def _of_tenant(name: str) -> dict[str, Any]:
    return {"tenant": name, "forbidden_docs": ["south#*" if name == "north" else "north#*"]}


def write_set(folder: Path, cases: dict[str, dict[str, Any]], chunks: dict[str, dict[str, Any]]) -> tuple[Path, Path]:
    """Both as files, in order: cases, a line each, and corpus."""
    return write_rows(folder / "cases.jsonl", list(cases.values())), write_rows(
        folder / "corpus.jsonl", list(chunks.values())
    )
