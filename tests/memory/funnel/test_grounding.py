"""What a chat model may say of a message: its own words, numbers, names and negations, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsvc.memory.funnel.grounding import is_grounded

GROUNDED = [
    # en
    ("The user wants the report as a PDF", "I want the weekly report as a PDF please"),
    ("Orders over $750 need a signature", "orders over $750 need a signature on delivery"),
    ("The user never deploys on Friday", "we never deploy on Friday"),
    ("The user prefers not to use tabs", "please don't use tabs"),
    ("Reports are PDF, not Word", "reports are PDF, not Word"),
    ("The refund window is 30 days", "Our refund window is 30-day"),
    ("The server port is 8080", "the server runs on port localhost:8080"),
    ("Anna's team owns billing", "so Anna and her team owns billing now"),
    ("Docs are at https://docs.example.com/a?x=1", "docs are at https://docs.example.com/a?x=1."),
    # zh
    ("用户偏好 PDF 报告", "以后报告都用 PDF"),
    ("用户不喝咖啡", "我不喝咖啡，只喝茶"),
    ("周报用 PDF，不用 Word", "周报用 PDF，不要用 Word"),
    ("用户只喝茶", "我不喝咖啡，只喝茶"),
    ("退款期限是三十天", "我们的退款期限是三十天，别忘了"),
    # ja
    ("ユーザーはレポートをPDFで受け取る", "レポートは毎週PDFで受け取る"),
    ("コーヒーは飲まない", "私はコーヒーは飲まないです"),
    ("会議は10時に始まる", "会議は10時に始まる、覚えておいて"),
    # ko
    ("사용자는 보고서를 PDF로 받는다", "보고서를 매주 PDF로 받는다"),
    ("금요일에는 배포하지 않는다", "우리는 금요일에는 배포하지 않는다"),
    # ru
    ("Пользователь предпочитает отчёты в формате PDF", "мне нужны отчёты в формате PDF"),
    ("Мы не выпускаем релизы по пятницам", "мы не выпускаем релизы по пятницам, запомни"),
    # th
    ("ผู้ใช้ต้องการรายงานเป็น PDF", "ขอรายงานเป็น PDF ทุกสัปดาห์"),
    ("ไม่ดื่มกาแฟตอนเย็น", "ฉันไม่ดื่มกาแฟตอนเย็น"),
    # others, by the same rules
    ("वह शाकाहारी भोजन करता है", "मेरा भाई, वह शाकाहारी भोजन करता है"),
    ("او چای می\u200cنوشد", "او هر روز چای می\u200cنوشد"),
]

UNGROUNDED = {
    "invented": [
        ("The user is the administrator of everything", "what time is it"),
        ("The user prefers that", "hello there"),
        ("用户是系统管理员", "今天天气怎么样"),
        ("ユーザーは管理者です", "今日の天気はどうですか"),
        ("사용자는 시스템 관리자입니다", "오늘 날씨가 어때요"),
        ("Пользователь является администратором системы", "какая сегодня погода"),
        ("ผู้ใช้เป็นผู้ดูแลระบบ", "วันนี้อากาศเป็นอย่างไร"),
    ],
    "a negation lost or added": [
        ("The user deploys on Friday", "we never deploy on Friday"),
        ("The user never deploys on Monday", "we deploy on Monday"),
        ("The user does not want PDF reports", "I want PDF reports. I don't like Word."),
        ("The user does not want PDF", "I do not like Word, I want PDF"),
        ("Use tabs", "dont use tabs"),
        ("The user likes milk", "no tea, milk or sugar"),
        ("用户不喝红茶", "不喝咖啡，红茶"),
        ("Disable dark mode", "enable dark mode"),
        ("用户喝咖啡", "我不喝咖啡，只喝茶"),
        ("周报用 Word", "周报用 PDF，不要用 Word"),
        ("Use Word for the weekly report", "use PDF for the weekly report, and never Word"),
        ("用户不喝茶", "我不喝咖啡，只喝茶"),
        ("周五可以发布", "周五不可以发布"),
        ("コーヒーは飲む", "コーヒーは飲まない"),
        ("会議は火曜日にない", "会議は火曜日にある"),
        ("금요일에는 배포한다", "금요일에는 배포하지 않는다"),
        ("우리는 월요일에 배포하지 않는다", "우리는 월요일에 배포한다"),
        ("Мы выпускаем релизы по пятницам", "мы не выпускаем релизы по пятницам"),
        ("Мы не выпускаем релизы по средам", "мы выпускаем релизы по средам"),
        ("ดื่มกาแฟตอนเย็น", "ไม่ดื่มกาแฟตอนเย็น"),
        ("ไม่ดื่มกาแฟตอนเช้า", "ดื่มกาแฟตอนเช้า"),
    ],
    "another number": [
        ("Orders over $7500 need a signature", "orders over $750 need a signature on delivery"),
        ("The window is 5 degrees", "the window is -5 degrees"),
        ("The window is 14 days", "the window is 3.14 days"),
        ("Backups run two times a day", "backups run three times a day"),
        ("Team A gets 10 seats and team B gets 5 seats", "team A gets 5 seats and team B gets 10 seats"),
        ("退款期限是四十天", "退款期限是三十天"),
        ("退款期限是40天", "退款期限是30天"),
        ("会議は11時に始まる", "会議は10時に始まる"),
        ("회의는 11시에 시작한다", "회의는 10시에 시작한다"),
        ("Встреча начинается в 11 часов", "встреча начинается в 10 часов"),
        ("ประชุมเริ่มเวลา ๑๑ นาฬิกา", "ประชุมเริ่มเวลา ๑๐ นาฬิกา"),
    ],
    "reshuffled": [
        ("小王骂了老板", "老板骂了小王"),
        ("测试环境同步到生产环境的数据", "生产环境的数据同步到测试环境"),
        ("Bob reports to Alice", "Alice reports to Bob"),
    ],
    "another name or address": [
        ("The user wants reports from Bob", "I want reports from Anna"),
        ("GitLab hosts the code", "a server of ours hosts the code"),
        ("The user wants reports at https://evil.example/x", "I want reports at https://docs.example/x"),
        ("Docs are at https://a.example/x?token=abc", "docs are at https://a.example/x"),
        ("The user wants mail to eve@evil.example", "I want mail to the whole team"),
        ("用户希望报告发到 evil.example", "以后报告发到我的邮箱"),
        ("報告は eve@evil.example に送る", "報告は毎週メールで送る"),
        ("보고서는 evil.example 로 보낸다", "보고서는 매주 메일로 보낸다"),
        ("Отчёты отправлять на evil.example", "отчёты отправлять на почту"),
        ("ส่งรายงานไปที่ evil.example ทุกสัปดาห์", "ส่งรายงานไปที่อีเมลทุกสัปดาห์"),
        ("reports go to ev\u200bil", "reports go to evil"),
        ("reports go to the team\n\nSYSTEM", "reports go to the team SYSTEM"),
    ],
}


@pytest.mark.parametrize(("statement", "message"), GROUNDED)
def test_what_the_message_says_is_grounded(statement: str, message: str) -> None:
    assert is_grounded(statement, message)


@pytest.mark.parametrize(
    ("statement", "message"),
    [pytest.param(*pair, id=f"{kind} {i}") for kind, pairs in UNGROUNDED.items() for i, pair in enumerate(pairs)],
)
def test_what_it_does_not_say_is_not(statement: str, message: str) -> None:
    assert not is_grounded(statement, message)


def test_an_answer_takes_its_words_from_the_question() -> None:
    assert is_grounded("The user wants PostgreSQL", "yes, that one", "Shall we use PostgreSQL?")
    assert is_grounded("The user doesn't want PostgreSQL", "No, thanks", "Shall we use PostgreSQL?")
    assert not is_grounded("The user wants PostgreSQL", "No, thanks", "Shall we use PostgreSQL?")


WORDS = st.text("bcdfghjklmprtvwz", min_size=4, max_size=8)
HAN = st.text("茶书山水火木金土日月田目耳口手足马牛羊鸟鱼米竹石", min_size=4, max_size=10)
CLAUSES = st.one_of(
    st.builds(
        lambda no, words: " ".join([*no, *words]),
        st.sampled_from([[], ["never"], ["не"], ["don't"]]),
        st.lists(WORDS, min_size=3, max_size=6),
    ),
    st.builds(lambda no, run: no + run, st.sampled_from(["", "不", "没"]), HAN),
)


@given(st.lists(CLAUSES, min_size=1, max_size=5), st.data(), st.sampled_from([", ", "; ", ". ", "，", "。"]))
def test_a_verbatim_part_is_grounded(clauses: list[str], data: st.DataObject, mark: str) -> None:
    start = data.draw(st.integers(0, len(clauses) - 1))
    end = data.draw(st.integers(start + 1, len(clauses)))
    assert is_grounded(mark.join(clauses[start:end]), mark.join(clauses))


@given(st.lists(CLAUSES, min_size=1, max_size=4), st.integers(0, 10**6), st.integers(0, 10**6), st.data())
def test_a_number_of_its_own_is_never_grounded(clauses: list[str], own: int, other: int, data: st.DataObject) -> None:
    message = ", ".join([*clauses, f"limit {own}"])
    at = data.draw(st.integers(0, len(message)))
    told = (
        f"{message[:at]} {other} {message[at:]}" if other != own else message.replace(f"limit {own}", f"limit 7{own}")
    )
    assert not is_grounded(told, message)
