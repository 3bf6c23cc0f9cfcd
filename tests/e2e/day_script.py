"""The script of a day and what it must end with, as data: three sessions of 20 turns in two tools.

The expectations were written by hand before the script was run.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import Any

from memsvc.v1 import memory_pb2 as pb
from memsvc.v1 import memory_service_pb2 as mpb
from memsvc.v1 import permanent_service_pb2 as ppb
from memsvc.v1 import skill_service_pb2 as kpb

MORNING, NOON, EVENING = "morning", "noon", "evening"
SHELL, EDITOR = "shell", "editor"
BEGAN = dt.datetime.now(dt.UTC).replace(microsecond=0) - dt.timedelta(hours=9)  # the same for both runs
HOURS = {MORNING: 0, NOON: 3, EVENING: 6}
SPEAKERS = {"user": mpb.SPEAKER_USER, "agent": mpb.SPEAKER_AGENT, "tool": mpb.SPEAKER_TOOL}
PASSWORD, KEY = "Tr0ub4dor-3xK9-quartz", "AKIA" + "Q3EGUTCZ7RZ5LNHK"

# -- the script --------------------------------------------------------------------------------------------------------

TURNS = {
    MORNING: (
        ("user", "早上好"),
        ("agent", "早上好！今天做什么？"),
        ("user", "帮我把订单服务的导出接口改成流式的，必须兼容 Python 3.11"),
        ("agent", "好的，计划如下：\n1. 读现有的导出代码\n2. 改成分块写出\n3. 补上集成测试"),
        ("tool", "src/orders/export.py:42: def export_all(rows):\nsrc/orders/export.py:57:     return b''.join(parts)"),
        ("agent", "现有的导出代码读完了，接下来改成分块写出。"),
        ("user", "以后测试都用 pytest，不要用 unittest"),
        ("agent", "收到，以后测试都用 pytest。"),
        ("user", "我们决定导出文件统一用 Parquet 格式，因为 CSV 太大了"),
        ("agent", "明白。"),
        ("tool", 'Traceback (most recent call last):\n  File "export.py", line 57, in export_all\nMemoryError'),
        ("agent", "集成测试报错了：导出 ORD-2025-0110 时内存不足。"),
        ("user", "那把每批行数调小再跑一次"),
        ("agent", "每批 500 行之后，ORD-2025-0110 导出成功了。"),
        ("user", "谢谢"),
        ("user", "生产数据库是 MySQL 8.0"),
        ("user", f"数据库密码是 {PASSWORD}"),
        ("agent", "好的，密码我不会保存。"),
        ("user", "算了，流式先不做了，我们先写导出接口的性能报告"),
        ("agent", "好的，开始写性能报告。"),
    ),
    NOON: (
        ("user", "Hi there"),
        ("agent", "Hello! What are we working on?"),
        ("user", "I want to migrate the billing service to gRPC. It must keep the old REST endpoints alive."),
        ("agent", "Here's the plan:\n1. Write the proto files\n2. Generate the stubs\n3. Add a REST gateway"),
        ("tool", "total 48\ndrwxr-xr-x 6 lin staff 192 Mar 3 09:12 proto"),
        ("agent", "The proto files are done. Next I'll generate the stubs."),
        ("user", "I prefer short commit messages in the imperative mood."),
        ("agent", "Noted."),
        ("user", "Never push directly to the main branch."),
        ("agent", "Understood, I will never push directly to the main branch."),
        ("user", "We decided to lint the contract with buf because protoc has no lint rules."),
        ("tool", "buf lint: 0 errors, 3 warnings"),
        ("agent", "The linter reports three warnings. Shall I fix them?"),
        ("user", "ok"),
        ("user", "The staging cluster runs in Frankfurt."),
        ("agent", "Good to know."),
        ("user", "What was the name of that gateway library again?"),
        ("agent", "You mean grpc-gateway."),
        ("user", f"My key for the registry is {KEY}, use it for the push."),
        ("agent", "I used it for this push and did not keep it."),
    ),
    EVENING: (
        ("user", "下午好"),
        ("agent", "下午好，接着做什么？"),
        ("user", "请帮我写这个版本的发布说明，只写用户能看到的变化"),
        ("agent", "好的，接下来收集已经合并的 PR。"),
        ("tool", '{"merged": 14, "open": 3}'),
        ("user", "对了，生产数据库昨晚换成 PostgreSQL 16 了，不再用 MySQL"),
        ("agent", "明白，生产数据库现在是 PostgreSQL 16。"),
        ("user", "以后发布说明都要中英双语"),
        ("agent", "好的。"),
        ("user", "嗯嗯"),
        ("tool", "2025-03-03 18:20:11 INFO rollout orders-7f9c 3/3 ready"),
        ("agent", "发布说明写好了。"),
        ("user", "我们决定每周三发布，周五不发版"),
        ("agent", "收到。"),
        ("user", "今天有点累"),
        ("agent", "辛苦了，要不要先休息一下？"),
        ("user", "部署脚本的负责人是王芳"),
        ("agent", "记下了。"),
        ("user", "哈哈好的"),
        ("agent", "明天见。"),
    ),
}
SKILL = """\
name: export-orders
description: Exports the orders of a month as a file.
trigger: When somebody asks for an export of orders.
version: 1.0.0
parameters:
  - name: currency
    description: Currency of the amounts.
    required: true
memory_refs:
  - parameter: currency
    subject: default_currency
steps:
  - Read the orders in batches.
  - Write the amounts in {currency}.
"""
EVENTS = {  # name: hour, type, summary, payload, causes
    "start": (0.3, "task_start", "开始改造订单导出接口", {"service": "orders"}, ()),
    "error": (0.6, "error", "导出 ORD-2025-0110 时内存不足", {"order": "ORD-2025-0110"}, ("start",)),
    "recovery": (0.8, "recovery", "每批改为 500 行后导出成功", {"order": "ORD-2025-0110"}, ("error",)),
    "end": (6.9, "task_end", "订单导出接口上线", {"service": "orders"}, ("start", "recovery")),
}


def moment(hour: float) -> dt.datetime:
    return BEGAN + dt.timedelta(hours=hour)


@dataclass(frozen=True)
class Step:
    """One call; `phase` names what is killed in the middle of it."""

    service: str
    method: str
    fields: dict[str, Any] = field(default_factory=dict)
    phase: str = ""
    keep: str = ""  # the answer is kept under this name


def appends(session: str, first: int, last: int) -> list[Step]:
    """The turns from first to last, counted from 1, two a call."""
    steps = []
    for at in range(first - 1, last, 2):
        said = [
            mpb.Message(speaker=SPEAKERS[speaker], content=content, time=moment(HOURS[session] + number / 60))
            for number, (speaker, content) in enumerate(TURNS[session][at : at + 2], at + 1)
        ]
        phase = "append" if first <= 9 <= last and at == 8 else ""
        steps.append(Step("sessions", "AppendTurns", {"turns": said}, phase))
    return steps


def event(name: str, phase: str = "") -> Step:
    hour, kind, summary, payload, causes = EVENTS[name]
    detail = {"event_type": kind, "payload": payload, "participants": ["lin"], "caused_by": causes}
    return Step("events", "Record", {"summary": summary, "event": detail, "occur_time": moment(hour)}, phase, name)


def asked(name: str, query: str, **options: Any) -> Step:
    options = {"latency_budget": {"seconds": 20}, **options}
    return Step("context", "AssembleContext", {"query": query, "options": options}, "context", name)


def currency(value: str, version: int) -> Step:
    fields = {"key": "default_currency", "value": {"string_value": value}, "if_version": version}
    return Step("facts", "Put", fields, "fact")


def session(name: str, tool: str, *middle: Step) -> list[Step]:
    return [
        Step("sessions", "Start", {"tool": tool}, "start"),
        *middle,
        Step("sessions", "GetState", keep=f"{name} state"),
        Step("sessions", "End", {}, "end"),
        Step("sessions", "GetConsolidation", {"wait": {"seconds": 60}}, keep=f"{name} consolidation"),
    ]


SCRIPT = {
    MORNING: session(
        MORNING,
        SHELL,
        Step("permanent", "Put", {
            "kind": ppb.PERMANENT_KIND_SAFETY, "content": "绝不在生产库上直接执行 DELETE", "reason": "house rule"
        }),
        *appends(MORNING, 1, 4),
        event("start"),
        currency("CNY", 0),
        *appends(MORNING, 5, 12),
        event("error", phase="event"),
        Step("sessions", "UpdateState", {
            "set_slots": {"branch": "feature/export"}, "finish": ["改成分块写出"]
        }, "update"),
        *appends(MORNING, 13, 14),
        event("recovery"),
        Step("skills", "Push", {"source": SKILL}, "skill"),
        asked("morning context", "导出接口"),
        *appends(MORNING, 15, 20),
    ),
    NOON: session(
        NOON,
        EDITOR,
        asked(
            "first of the editor",
            "I am about to export the orders: which file format, which test framework, which production database, "
            "which default_currency?",
            max_memories=16,
        ),
        *appends(NOON, 1, 10),
        Step("sessions", "UpdateState", {"add_constraints": ["Answer in English"], "set_slots": {"port": "50051"}},
             "update"),
        *appends(NOON, 11, 20),
    ),
    EVENING: session(
        EVENING,
        SHELL,
        *appends(EVENING, 1, 8),
        currency("EUR", 1),
        Step("sessions", "UpdateState", {"add_pending": ["发给测试组"]}, "update"),
        *appends(EVENING, 9, 20),
        Step("skills", "RecordRun", {"name": "export-orders", "outcome": kpb.RUN_OUTCOME_SUCCESS}, "run"),
        event("end"),
    ),
    "after": [asked("after the day", "生产数据库现在是什么")],
}  # fmt: skip

# -- what it must end with: texts that something holds -----------------------------------------------------------------

STANDS = {  # in exactly one memory that is ACTIVE and no event: its type
    "pytest": (pb.MEMORY_TYPE_PREFERENCE, pb.MEMORY_TYPE_RULE),
    "Parquet": (pb.MEMORY_TYPE_DECISION,),
    "PostgreSQL 16": (pb.MEMORY_TYPE_FACT, pb.MEMORY_TYPE_DECISION),
    "commit messages": (pb.MEMORY_TYPE_PREFERENCE,),
    "main branch": (pb.MEMORY_TYPE_RULE,),
    "buf": (pb.MEMORY_TYPE_DECISION,),
    "Frankfurt": (pb.MEMORY_TYPE_FACT,),
    "双语": (pb.MEMORY_TYPE_RULE, pb.MEMORY_TYPE_PREFERENCE),
    "周三": (pb.MEMORY_TYPE_DECISION, pb.MEMORY_TYPE_RULE),
    "王芳": (pb.MEMORY_TYPE_FACT,),
}
REPLACED = {"MySQL 8.0": "PostgreSQL 16"}
NOWHERE = (
    "早上好", "下午好", "谢谢", "Traceback", "export.py", "drwx", "0 errors", "merged", "rollout", "有点累",
    "gateway library", "grpc-gateway", "密码", "registry", "哈哈", "明天见", "Hi there", "休息", "3.11", "周五（",
)  # fmt: skip
STATES: dict[str, dict[str, Any]] = {
    MORNING: {
        "goal": ("性能报告",),
        "not goal": ("流式",),
        "constraints": ("unittest",),
        "not constraints": ("3.11",),
        "pending": (),
        "finished": ("读现有的导出代码", "改成分块写出"),
        "slots": {"branch": "feature/export"},
    },
    NOON: {
        "goal": ("billing service", "gRPC"),
        "not goal": (),
        "constraints": ("REST endpoints alive", "main branch", "Answer in English"),
        "not constraints": (),
        "pending": ("Generate the stubs", "Add a REST gateway"),
        "finished": ("Write the proto files",),
        "slots": {"port": "50051"},
    },
    EVENING: {
        "goal": ("发布说明", "用户能看到的变化"),
        "not goal": (),
        "constraints": ("双语",),
        "not constraints": (),
        "pending": ("收集已经合并的 PR", "发给测试组"),
        "finished": ("发布说明",),
        "slots": {},
    },
}
CONTEXTS = {  # held, not held
    "first of the editor": (("绝不在生产库", "pytest", "Parquet", "MySQL 8.0", "default_currency", "CNY"), ()),
    "after the day": (("绝不在生产库", "PostgreSQL 16"), ("MySQL 8.0",)),
}
EPISODES = {MORNING: (SHELL, "性能报告"), NOON: (EDITOR, "gRPC"), EVENING: (SHELL, "发布说明")}
CHAIN = ("error", "recovery")  # of ORD-2025-0110
