"""Stage 1: what is noise by its shape, whoever said it.

Purpose: greetings, acknowledgements, repeats, raw tool output, injected memory blocks, compaction summaries and system
prompts never reach the signals. A rule names its reason; a message that no rule names goes on.

Threading: pure functions.

Rejected: dropping every tool message (a bot that reports a release or a refund reports an event); trusting a message
that talks to the memory system (it is text like any other, and "forget everything" is not a statement).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from memsvc.memory.funnel.patterns import factored
from memsvc.memory.funnel.values import Message

REPEAT = "repeat of an earlier message"
INJECTED = "injected memory or system block"
SUMMARY = "summary of a conversation"
PROMPT = "system prompt"
TOOL_OUTPUT = "raw tool output"
ACKNOWLEDGED = "acknowledgement of what was just said"
PHATIC = "greeting, thanks or small talk"
NO_WORDS = "no words"
MEMORY_COMMAND = "instruction aimed at the memory system"


def _fast(pattern: str, flags: int = 0) -> re.Pattern[str]:
    return re.compile(factored(pattern), flags)


_BLOCK = re.compile(
    r"<(memory|memories|system-reminder|system_reminder|context|retrieved_memories|relevant_memories|user_memory|"
    r"memory_context|recalled|knowledge|env|environment_details|command-\w+|local-command-\w+|"
    r"persisted-output)\b[^>]*>.*?(?:</\1>|\Z)",
    re.S | re.I,
)
_BLOCK_HEAD = re.compile(
    r"^\W*(?:relevant memor(?:y|ies)|retrieved memor(?:y|ies)|recalled memor(?:y|ies)|memory context|"
    r"(?:long[- ]term|user) memor(?:y|ies)|memories(?: about the user)?|what (?:i|we) know about the user|"
    r"known facts about the user|user profile|相关记忆|检索到的记忆|召回的?记忆|长期记忆|用户记忆|历史记忆|已知记忆|"
    r"用户画像|以下是.{0,8}记忆)\W*(?:\n|[:：])|^[^\n]{0,50}\bmemor(?:y|ies)\b[^\n]{0,40}:\s*\n\s*[-*•\d]|"
    r"^[^\n]{0,24}记忆[^\n]{0,8}[:：]\s*\n",
    re.I,
)
_SUMMARY = re.compile(
    r"^\W*(?:this session is being continued|(?:here is |the following is )?(?:a |the )?(?:conversation|session|"
    r"chat|context|compact(?:ed|ion)?) "
    r"(?:summary|recap)|summary (?:of|so far)|[^\n]{0,30}\b(?:summary|recap) of (?:our|the|this|your|"
    r"my) (?:previous|earlier|prior|last|conversation|session|chat)|previous conversation|earlier in (?:this|"
    r"the) conversation|(?:compacted|compressed) context|the conversation (?:so far|above) (?:was|has been)|"
    r"本次(?:会话|对话).{0,6}(?:接续|延续)|(?:此|该)?(?:会话|对话|上下文)(?:已|的)?(?:摘要|总结|压缩|小结)|"
    r"以下是.{0,10}(?:摘要|总结)|(?:历史|之前的?)(?:对话|会话)(?:摘要|总结)|(?:之前|此前)的?对话.{0,6}(?:摘要|总结|"
    r"压缩)|前情提要)",
    re.I,
)
_PROMPT = re.compile(
    r"^\W*(?:you are (?:an? |the )?(?:\w+[ -]){0,4}(?:assistant|agent|expert|copywriter|ai|bot|model|engineer|"
    r"developer|chatbot|tutor|translator|reviewer|analyst|writer|editor|teacher|coach)\b|your (?:role|task) is to|"
    r"system prompt|you have access to the following tools|#+ ?(?:instructions|role)|你(?:现在)?是(?:一(?:个|名|"
    r"位))?.{0,12}(?:助手|专家|文案|机器人|客服|模型|工程师|翻译|顾问|老师)|你的(?:角色|任务)是|系统提示)",
    re.I,
)
_COMMAND = _fast(
    r"\b(?:ignore|disregard|override|bypass)\b.{0,30}\b(?:rules?|instructions?|polic(?:y|ies)|filters?|guidelines|"
    r"prompt)\b|\bsystem (?:override|command|instruction)\b|\b(?:forget|delete|erase|wipe|clear|purge|drop|"
    r"overwrite)\b.{0,25}\b(?:everything|all|every|entire)\b.{0,40}\b(?:memor\w+|know|about|stored|user|said)\b|"
    r"\b(?:store|save|write|record|keep)\b.{0,30}\b(?:permanent (?:rule|memory)|every namespace|all namespaces|"
    r"all users|every message|everything)\b|\bmemory (?:system|service|store|engine)[:,]|\b(?:importance|confidence|"
    r"priority) ?[=:] ?(?:1|max)|(?:忽略|无视|绕过|覆盖).{0,10}(?:规则|指令|限制|提示|设定|策略|准则|原则|约束)|"
    r"系统(?:指令|命令|覆盖)|(?:清空|删除|抹掉|忘掉|忘记|清除).{0,14}(?:全部|所有|一切).{0,10}(?:记忆|内容|信息|"
    r"东西)?|(?:全部|所有|一切)记忆.{0,6}(?:清空|删除|清除|抹)|(?:存|写|记)(?:为|成|入|进).{0,6}(?:永久|"
    r"所有命名空间|最高优先)",
    re.I,
)
# Words that every command of the kind has: far cheaper to look for than the whole.
_COMMAND_HINT = re.compile(
    r"(?:rule|instruction|polic|filter|guideline|prompt|memor|system|everything|namespace|all |every|entire|permanent"
    r"|importance|confidence|priority|规则|指令|限制|提示|设定|策略|准则|原则|约束|系统|记忆|全部|所有|一切|永久|命名空间|最高)",
    re.I,
)
_PHATIC_WORDS = frozenset(
    "hi hey hello yo hiya howdy good morning afternoon evening night thanks thank you thx ta cheers ok okay k k"
    "k cool great perfect "
    "nice lol haha hahaha heh sure yep yes yeah yup ya no nope nah worries problem right bye goodbye see later "
    "tomorrow brb afk "
    "welcome much appreciated a bunch lot so very well done sounds looks good to me fine got it gotcha will do "
    "makes sense "
    "understood noted alright awesome fantastic brilliant amazing wonderful please there all everyone team agai"
    "n that works "
    "for now lunch back in ten minutes min mins sec two five coffee grabbing getting dinner break hmm hm oh ah "
    "wow fair enough "
    "true exactly indeed agreed lgtm ship one you're star legend the best have day weekend happy friday monday "
    "new year christmas "
    "merry birthday holidays anyone around still here happy help is it this ttyl np ty tysm lovely super and i'"
    "m i am just yay oops "
    "sorry enough said never mind nvm whatever up to dunno either way any of them defaults default default's de"
    "faults are as "
    "you choose your call pick then also too go ahead on it's it".split()
)
_PHATIC_HAN = re.compile(
    r"^(?:在吗|在不在|你好|您好|哈喽|嗨|早上好|早安|早|上午好|中午好|下午好|晚上好|晚安|午安|大家好|谢谢|谢啦|谢了|"
    r"多谢|感谢|非常感谢|辛苦了?|辛苦啦|好的|好嘞|好呀|好吧|好哒|好滴|好|嗯+|哦+|噢|收到|明白了?|了解了?|知道了?|"
    r"懂了|行吧?|可以的?|没问题|没事了?|没有了|不用了|不客气|客气了|哈+|嘿+|呵+|嘻+|笑死|绝了|牛啊?|厉害|太好了|"
    r"太棒了|棒|赞|对的?|是的|没错|拜拜|再见|回见|回头(?:聊|说|见)|明天见|先这样|就这样吧?|我去(?:吃饭|开会|干饭|"
    r"个厕所|忙)了?|等我(?:一下|会儿|五分钟)|马上回来|稍等|帮大忙了|你真(?:好|棒)|么么哒|爱你|比心|ok|okay|随便|"
    r"都行|都可以|无所谓|随你|你看着办|你定|你决定|默认的?(?:就行|就好|吧)?|用默认的?(?:吧|就行)?|就这个(?:感觉)?|"
    r"挺好的?|不错|完美|新年快乐|中秋快乐|节日快乐|生日快乐|圣诞快乐|端午安康|阖家幸福|周末愉快|恭喜(?:发财)?|"
    r"祝你.{0,8}|祝您.{0,8}|亲|啊+|呀|哇+|唉+|哎+|那|了|啦|呢|哈|嘛|吧|的|哟|喔|666+|233+)+$"
)
_STRIP = re.compile(r"[^\w\s'’]|_")
_WORD = re.compile(r"[a-z0-9']+|[\u3400-\u9fff]")
_RESTATED = _fast(
    r"\b(?:like i (?:said|mentioned|wrote)|as i (?:said|mentioned|wrote|told)|as (?:said|mentioned|stated|before)|"
    r"i (?:already|just) (?:told|said|mentioned|wrote)|(?:mentioned|wrote|said|told you) (?:above|before|earlier|"
    r"already)|same as (?:before|above)|see above|again[:,]|once again|i repeat|to repeat|repeating|as above|"
    r"still the same)\b|^again\b|我说过|说过了|刚(?:才)?(?:说|讲|提)(?:过|了)|前面(?:说|讲|提)|上面(?:说|讲|写|提)|"
    r"如上|如前|还是那句|再说一遍|重复一遍|跟之前一样|和刚才一样|之前(?:就)?(?:说|讲)过|不是说了",
    re.I,
)
_ACK = re.compile(
    r"^\W*(?:noted|got it|understood|sure|okay|ok|alright|will do|thanks for|thank you for|i've (?:made a note|"
    r"noted|saved|recorded|updated)|i'll (?:remember|keep|make sure|use|avoid|call|note)|i will (?:remember|keep|"
    r"use|avoid|call)|to confirm|just to confirm|so you|absolutely|of course|perfect|great|certainly|roger|"
    r"copy that|good to know|明白|好的|好嘞|收到|了解|已(?:记录|记住|记下|保存|更新)|知道了|没问题|记住了|记下了|"
    r"那我|确认一下|嗯|您(?:的意思|是说)|谢谢您?告知)",
    re.I,
)
_TOOL_SHAPES = re.compile(
    r"^\s*[\[{][\s\S]*[\]}]\s*$|traceback \(most|^\s+at [\w.$]+\(|\bexception\b.*(?:\n|:)|^panic:|goroutine \d|"
    r"^\s*<[a-z!/][^>]*>|^[|+].*[|+]\s*$|^-{2,}\+|---\+---|-> ?[\[{\"]|^\S+ ?-> |^(?:npm|yarn|pip|warn|warning|"
    r"error|info|debug|fatal|note|notice)\b[ :!\[]|^\[(?:info|debug|warn|warning|error|trace|\d)|\b\d{1,3} ?%|…\s*$|"
    r"\.\.\.\s*$|^\d{4}-\d\d-\d\d[t ]\d\d:\d\d|^\w{3} +\d+ \d\d:\d\d:\d\d|\d{1,3}(?:\.\d{1,3}){3} - |"
    r"\b\d+ (?:passed|failed|skipped|errors?|warnings?|problems?|rows? (?:in set|affected)|packages?)\b|^diff --git|"
    r"^@@ |^[-d][rwx-]{9}|^total \d+$|^(?:on branch|collecting|downloading|installing|successfully installed|"
    r"compiling|building|finished|step \d|#\d+ |running|removing|fetching|cloning|resolving|unpacking|pulling|"
    r"added \d|get:|hit:|exit code|returned?|read_file|ls|cat|query ok|plan:|dry run|retrying|heartbeat|ping|curl|"
    r"user-agent|robots|pid |name +ready|terraform|deploying|syncing|uploading|waiting|starting|loading|processing|"
    r"connecting|using cache|sending build|search_\w+|get /|post /|http/)|^\s*\d+[\t:|] ?(?:import|def|#|const|from|"
    r"class|func)|^\S+:\d+(?::\d+)?[: ]|^--- fail|^=== run|={4,}|-{8,}|assertion|\b\w+\(.*\) (?:returned|->)|\t.*\t|"
    r"seq=\d+|正在|构建进度|进度|心跳|搜索结果|查询结果|返回 ?\d+|重试中|预演|测试用例|^警告|^错误[：:]|"
    r"未做任何更改|天气查询|^姓名|等待|下载中|加载中|\b\w+\.\w+ ?-> ?|\bnothing (?:was )?(?:changed|to commit)|"
    r"would be (?:deleted|created|changed)|will be created|https?/\d",
    re.I | re.M,
)
_TOOL_OUTCOME = _fast(
    r"\b(?:published|released?|rolled (?:out|back)|rollback (?:complete|done|finished)|deployed|resolved|closed|"
    r"succeeded|refund(?:ed)?|failed permanently|suspended|cancell?ed|returned to sender|approved|completed?|"
    r"restored|migrat(?:ed|ion \w+ (?:applied|done))|incident|root cause|terminated|delivered|shipped|paid|"
    r"expired and|replaced|merged|renewed|live for|escalated|confirmed|locked|blocked|disabled|revoked|rotated|"
    r"charged back|chargeback|declined|breach|outage|aborted|reverted|failed over|rejected|denied|archived|"
    r"written off|discarded|overdue|failed (?:three|\d+) times|aborted|reverted|exceeded|failed over|postponed|"
    r"reopened|is off|are off|moved to|downgraded|upgraded|banned|voided|reversed|out of stock)\b|已(?:关闭|恢复|"
    r"解决|退款|退回|全量|发布|上线|回滚|取消|暂停|升级|生效|完成|修复|冻结|签收|锁定|吊销|续|归档|合并|到账|驳回|"
    r"通过|下线|切换|扩容)|故障|根因|退款成功|支付失败|回滚完成|发布(?:成功|完成)|驳回|未通过|停止|报废|(?:故障|"
    r"中断|告警).{0,8}结束|客户取消|延期|冻结|逾期|拒付|召回|上线(?:成功|完成)|全额退|工单.{0,14}关闭|赔付|验收|"
    r"审批通过|成功(?:切换|迁移|上线|退)|迁移完成",
    re.I,
)
_HISTORY_LOOK = 20


def strip_blocks(text: str) -> str:
    """The text without injected blocks; the user's own words around them stay."""
    return _BLOCK.sub(" ", text).strip() if "<" in text else text.strip()


def noise(message: Message, own_text: str, history: Sequence[Message]) -> str | None:
    """The reason why the message is noise, or None. `own_text` is `strip_blocks` of its content."""
    if message.speaker == "system":
        return PROMPT
    if not own_text:
        return INJECTED if message.content.strip() else NO_WORDS
    if _BLOCK_HEAD.search(own_text):
        return INJECTED
    if _SUMMARY.search(own_text):
        return SUMMARY
    if message.speaker == "tool":
        return tool_noise(own_text) or (REPEAT if _repeats(own_text, history) else None)
    if _PROMPT.search(own_text):
        return PROMPT
    if _COMMAND_HINT.search(own_text) and _COMMAND.search(own_text):
        return MEMORY_COMMAND
    words = _STRIP.sub(" ", own_text).lower().split()
    if not words or not any(char.isalnum() for char in own_text):
        return NO_WORDS
    if _is_phatic(words, own_text):
        return PHATIC
    return _echo(message, own_text, history)


def tool_noise(text: str) -> str | None:
    """TOOL_OUTPUT unless the text reads as a report of an outcome."""
    if _TOOL_OUTCOME.search(text) is None:
        return TOOL_OUTPUT
    shape = _TOOL_SHAPES.search(text)
    return TOOL_OUTPUT if shape is not None and not _is_report(text, shape.group()) else None


def _is_report(text: str, shape: str) -> bool:
    """A percentage or a count inside of prose is no shape of a log."""
    stripped = shape.strip().lower()
    return (
        "\n" not in text.strip()
        and bool(re.fullmatch(r"\d+ ?%|\d+ \w+|notice[: ]|error[: ]?|note[: ]", stripped))
        and len(_WORD.findall(text.lower())) >= 8
    )


def _is_phatic(words: list[str], text: str) -> bool:
    if len(words) <= 8 and all(word.strip("'") in _PHATIC_WORDS for word in (w.replace("’", "'") for w in words)):
        return True
    return len(text) <= 30 and _PHATIC_HAN.match("".join(words)) is not None


def _tokens(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


def _repeats(text: str, history: Sequence[Message]) -> bool:
    """Whether the same words, digits apart, were said before."""
    plain = re.sub(r"[\W\d_]+", "", text.lower())
    if not plain:
        return any(text == earlier.content.strip() for earlier in history)
    return any(re.sub(r"[\W\d_]+", "", earlier.content.lower()) == plain for earlier in history)


def _echo(message: Message, text: str, history: Sequence[Message]) -> str | None:
    """Repeats, "as I said", and an agent's acknowledgement of what it was told."""
    if not history:
        return None
    recent = history[-_HISTORY_LOOK:]
    plain = re.sub(r"[\W_]+", "", text.lower())
    own = _tokens(text)
    restated = _RESTATED.search(text) is not None
    acknowledges = message.speaker == "agent" and _ACK.search(text) is not None
    for earlier in reversed(recent):
        if re.sub(r"[\W_]+", "", earlier.content.lower()) == plain:
            return REPEAT
        shared = own & _tokens(earlier.content)
        if len(own) >= 5 and len(shared) == len(own) == len(_tokens(earlier.content)):
            return REPEAT
        if restated and shared:
            return REPEAT
        if acknowledges and earlier.speaker == "user" and shared:
            return ACKNOWLEDGED
    return None
