"""Patterns of dialogue-state tracking, and the cues that keep a sentence from setting state.

Purpose: what a goal, a change of goal, a constraint, a slot, a finished or a pending step look like in Chinese and
English. Whether a sentence asserts anything is the funnel's knowledge: its tables are used for it.

Threading: compiled at import, read only.

Rejected: all of the funnel's cues for each sentence (0.1 ms a sentence, a fourth of what a whole call may take).
"""

from __future__ import annotations

import re

from memsvc.memory.funnel import cues
from memsvc.memory.funnel.cues import HAN, Cue, is_mostly_latin
from memsvc.memory.funnel.patterns import prefixes_of

NOT_STATED = Cue.QUESTION | Cue.HYPOTHETICAL | Cue.UNDECIDED | Cue.WISH | Cue.REPORTED | Cue.SARCASM
WORDS_ONLY = Cue.HYPOTHETICAL | Cue.WORDING | Cue.SARCASM  # at the start of a message they colour all of it
_WANTED = NOT_STATED | WORDS_ONLY | Cue.LASTING | Cue.REQUEST
_ENGLISH = tuple(test for test in cues.ENGLISH if test[0] & _WANTED)
_CHINESE = tuple(test for test in cues.CHINESE if test[0] & _WANTED)


def some_cues(sentence: str) -> int:
    """Those cues of a sentence that matter here, as bits of `Cue`."""
    lowered = sentence.lower().replace("’", "'")
    bits = 0
    if HAN.search(lowered):
        for bit, search in _CHINESE:
            if search(lowered):
                bits |= bit
        if not is_mostly_latin(lowered):
            return bits
    there = prefixes_of(lowered)
    for bit, test, needed in _ENGLISH:
        if not bits & bit and (needed is None or not there.isdisjoint(needed)) and test(lowered):
            bits |= bit
    return bits


def _re(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.I)


CLAUSE = re.compile(
    r"[，；。！]+|[,;] +|\s+(?:and|but) (?=(?:don'?t|do not|must|never|only|keep|use|it must|it should|then|no "
    r"more)\b)"
    r"|(?<=[\w\u3400-\u9fff])(?=(?:但是?|而且|并且|同时)(?!.{0,2}$))| [-–—] ",
    re.I,
)
LEAD = _re(
    r"^(?:(?:ok(?:ay)?|so|well|hi|hey|hello|great|thanks|thank you|now|right|alright|and|but|also|嗯+|好的?|那么?|行|"
    r"对了|另外|还有|但是?|而且|并且|同时|你好|谢谢|现在)(?:[,，。.!！:：\s]+|(?=帮我|请|我|不|要|别|必|只)))+"
)

# -- goals: the rest of the sentence behind the match is what is wanted
WANT = _re(
    r"^(?:(?:please|pls|kindly)\s+(?!(?:don'?t|do not|never|note|remember|only|keep|use|make sure|avoid|be)\b)"
    r"|(?:can|could|would|will) (?:you|we) (?:please )?(?:help (?:me|us) (?:to )?)?(?!(?:tell|explain|remind|confirm|"
    r"say|believe|remember|see|also|still|even|really|be)\b)"
    r"|(?:please )?help (?:me|us) (?:to |with )?"
    r"|let'?s (?!(?:say|see|not|imagine|assume|pretend|be)\b)|let us |"
    r"(?:i|we)(?:'d| would) like (?:you )?to |(?:i|we) (?:want|need) (?:you )?to |"
    r"(?:i'?m|we'?re|i am|we are) (?:trying|going|here) to |"
    r"(?:the|my|our|today'?s) (?:goal|task|aim|plan) is (?:now )?(?:to )?|(?:goal|task): *)"
    r"|^(?:麻烦|请|劳驾)?(?:你|您)?(?:先|再)?(?:能不能|能|可不可以|可以|可否)?(?:请)?帮(?:我们?|忙|"
    r"个忙)[,，]?(?:来|先)?"
    r"|^请(?:你|您)?(?!问|注意|记住|记得|不要|勿|别|务必|一定|只|用|按|保持|稍)"
    r"|^(?:我们?|咱们?)(?:现在|今天)?(?:想要?|要|需要|打算|准备)(?!想|的|求|知道|问|起|说|是|你|是不是|怎)(?:先)?"
    r"|^(?:我们?|咱们?)(?:来|开始|一起)|^让我们(?:来)?|^(?:这次的?|今天的?|我的)?(?:目标|任务|需求)(?:是|为|[:：])"
)
WANT_THING = _re(r"^(?:i|we) (?:need|want) (?=(?:a|an|the|some|my|our)\b)|^i'd like (?=(?:a|an|the|some)\b)")
ALSO = _re(
    r"^(?:also|additionally|in addition|one more thing|and then)\b|\b(?:too|as well)\W*$|^(?:另外|还有|顺便|再|"
    r"顺带|同时)"
)

# -- turning away from a goal
TURN = _re(
    r"^(?:actually|on second thoughts?|change of plans?|no,? wait|wait|hold on|instead(?: of (?:that|this|it))?)"
    r"(?:[,.:;!]+\s*|\s+(?=(?:let'?s|i|we|can|please)\b))"
    r"|^(?:那?(?:还是)?算了吧?|等等|等一下|不对|我?改主意了|计划有变|换个?(?:思路|方向|任务|"
    r"话题))(?:[，,。:：！!\s]+|$)"
)
CANCEL = _re(
    r"^(?:(?:actually|ok|please),? )?(?:(?:let'?s )?(?:forget|drop|scrap|scratch|skip) (?:(?:about )?(?:that|this|it|"
    r"everything)|(?:about )?the (?!\w+ (?:constraint|limit))[\w -]{1,40}?)|never ?mind(?: (?:that|this|it|the "
    r"[\w -]{1,40}"
    r"?))?|let'?s not (?:do )?[\w -]{1,50}?|(?:stop|no longer) (?:working on|doing) [\w -]{1,40}?)(?=[,.;:!]|$)"
    r"|^(?:那?(?:就|还是|我们?|先|暂时)*)(?:不|别)(?:要|用|再|想)?(?:做|弄|写|搞|管|开发|实现|修|查|看|部署|改)"
    r"[^，,。；;]{0,30}?了(?=[，,。；;！!]|$)"
)
NEW = _re(
    r"^(?:我们?|咱们?|那就?|还是|就|请|你)*(?:改成|改为|改做|换成|换做|转而|改去|先(?!别|不|说|看看再))(?=.{2})"
    r"|^(?:focus on|work on|switch to|move on to|do) (?=\S)|^let'?s (?=\S)"
)
USE_CHANGE = _re(
    r"^(?:let'?s |we(?:'ll| will| should) |i want to |please )?(?:go with|use|switch to using|do it (?:in|with)|"
    r"write it "
    r"(?:in|with)|in) (?=\S)|^(?:改成|改为|改|换成|换)?(?:用|使用|采用)\s*(?=\S)"
)
INSTEAD = _re(r"[, ]+instead\W*$")
KEEP = _re(
    r"(?:其[他它]|别的|原来的?|之前的?)?(?:要求|约束|限制|条件|规则)(?:都)?(?:不变|照旧|还是|保留|一样)|"
    r"其[他它](?:都)?(?:不变|照旧|一样)"
    r"|\b(?:same|keep (?:all )?(?:the|my|our|those)) (?:other )?(?:constraints?|rules|requirements|limits)\b"
    r"|\beverything else (?:stays|remains|is the same)\b|\b(?:constraints?|rules|requirements|limits) (?:still "
    r")?(?:stay|"
    r"apply|hold|remain|stand)\b"
)

# -- the rest
CONSTRAINT = _re(
    r"\bmust(?:n'?t)?\b|\b(?:don'?t|do not|never)\s+(?!(?:know|think|worry|mind|have|need|want|understand|see|get it|"
    r"remember|believe|like|care|feel|forget)\b)\w|\b(?:at most|at least|no more than|no less than|no longer than|"
    r"not more than|within \d|less than \d|under \d|up to \d|has to be|have to be|needs to be|should (?:not|be|"
    r"only|use|"
    r"never))\b|\bonly\b(?! (?:if|when|problem|question|thing))(?=\s+\w)|^(?:please )?(?:only |always )?(?:use|"
    r"avoid|keep|"
    r"stick to|make sure|without|no) \S|\bwithout (?:using |any )?\w+"
    r"|必须|务必|一定要|只能|只用|仅限|只要(?!.{0,8}就)|禁止|严禁|不许|不准|不得|不超过|不能(?!够理解)|"
    r"不要(?!紧|钱|脸)|"
    r"(?:^|[^区分级类个])别(?![的人处名墅])|"
    r"最多|最少|至少|不少于|不多于|控制在|以内|之内|^(?:以后|今后|从现在起)?(?:请|都|统一|全部|一律|记得)*(?:用|"
    r"使用|采用|按照?|避免|保持)\s*(?=\S)"
)
# What holds from now on: the clause behind the opener is a constraint for good, never a goal or a slot. The word that
# makes it one governs the verb: "a function that always returns 0" is a thing to write.
STANDING = _re(
    r"^(?:(?:please|pls|kindly)\s+|(?:can|could|would|will) (?:you|we) (?:please )?|let'?s (?!not\b)|(?:i|we)(?:'d| "
    r"would)? (?:want|need|like) you to |make sure (?:to |you |that you ))*"
    r"(?:(?:always|never) (?!mind\b)(?=\S)|(?:from now on|from here on|going forward|henceforth)\b)"
    r"|^(?:请|麻烦|劳驾|拜托)?(?:你|您)?(?:从现在(?:起|开始)|从今以后|从今往后"
    r"|(?:以后|今后|往后)(?=.{0,20}?(?:都|一律|统一|全部|默认|必须|务必|总是|始终|请|别|不要|只)))"
    r"|^(?:(?:我|我们)(?:要|想要?|希望|需要)(?:你|您)|(?:请|麻烦|劳驾|拜托|务必)(?:你|您|务必|一定|要|在[^，,]{1,12}?(?:里|中|"
    r"时候?))*) ?(?:总是|始终|永远|一律|(?:一直|默认)(?=用|使用|按)|每次(?=都|要|先|必))(?=.)"
)
RELAX = _re(
    r"\b(?:(?:you|we) (?:can|may)|it'?s (?:ok|okay|fine) to|feel free to) (?:now )?(?P<en>.+?)(?: now| again| "
    r"after all)\W*$"
    r"|\b(?:no longer need to|no need to|don'?t need to) (?P<en2>.+?)(?: any ?more)?\W*$"
    r"|(?:现在|已经)?(?:可以|允许)(?P<zh>[^，。]+?)了\W*$|(?:不用|不必|不需要)(?:再)?(?P<zh2>[^，。]+?)了\W*$"
)
FINISHED = _re(
    r"^(?P<en1>.{2,120}?) (?:is|are|was|were|has been|have been) (?:now )?(?:all )?(?:done|finished|completed?|fixed|"
    r"deployed|merged|implemented|in place)\b|^(?:i'?ve |we'?ve |i have |we have |i |we )?(?:just |now |already "
    r")*(?:done "
    r"with|finished|completed|fixed|implemented|deployed|merged|added|created|wrote|written|set up|installed|"
    r"updated) "
    r"(?P<en2>.+)|^(?P<en3>.{0,80}?)[:,]? ?(?:all )?(?:done|finished|complete)\W*$"
    r"|^(?P<zh1>.{0,60}?)(?:都|全部|全|也|终于|刚)*(?:已经?)?(?:完成|搞定|做好|弄好|写好|修好|部署好|配好|改好|"
    r"装好|跑通|"
    r"部署完|迁移完|[^\W用卖吃喝没不未]完)(?:了|啦|完毕)?\W*$|^(?:已经?|刚|我)+(?:完成|搞定|做好|写好|修好|修复|部署|合并|"
    r"添加|创建|实现)了?(?P<zh2>.+)"
)
NOT_FINISHED = _re(
    r"\b(?:not|n't|never|once|when|until|after|before|will|should|must|to be|if|almost|nearly|half|needs?|yet)\b"
    r"|没|未|不|等|之?后|之前|才|要|如果|一旦|差不多|快|需|将"
)
PENDING = _re(
    r"^(?:(?:and )?(?:next|then|after that|afterwards|later|finally)(?:\s*[:,，]\s*|\s+(?=\w))(?:(?:we|i|you)(?:'ll)? "
    r")?(?:should |"
    r"will |need to |have to |must |can )?|(?:we|i|you)(?:'ll)? (?:still|also) (?:need|have) to |(?:to-?do|next "
    r"steps?|remaining|still open)(?: is| are)?(?: to)?\s*[:：]\s*|still (?:need|have) to )(?P<en>.{2,})"
    r"|^(?:接下来|下一步|然后|之后|随后|最后|还要|还需要?|还得|还差|待办|剩下的?)(?:就?是|[:：,，]|我们|我|你|"
    r"再|还)*(?:要|需要|得|会)?"
    r"(?P<zh>.{2,})"
)
FIRST = _re(r"^(?:首先|先|第一步[,，:：]?)(?P<zh>.{2,})|^(?:first(?:ly)?,?|first of all,?|start with) (?P<en>.{2,})")
LIST_LINE = re.compile(
    r"^\s*(?:[-*+]\s*\[(?P<box>[ xX✓])\]\s*|(?:步骤|step)?\s*\d{1,2}\s*[.)、:：]\s*|"
    r"第[一二三四五六七八九十]步[:：,，]?\s*)(?P<text>\S.*)$",
    re.I,
)
PLAN = _re(
    r"\b(?:plan|steps?|to-?do|i'?ll|i will|we'?ll|going to|let me|here'?s how|roadmap)\b|计划|步骤|接下来|方案|"
    r"我会|我将|待办|分.{1,3}步|安排"
)
_VALUE = r"(?:\"(?P<{0}q>[^\"]{{1,200}})\"|“(?P<{0}c>[^”]{{1,200}})”|`(?P<{0}b>[^`]{{1,200}})`|(?P<{0}v>{1}))"
SLOT_SIGN = _re(
    r"^(?:the |our |my |请?把)?(?P<key>[a-z_][\w. -]{0,30}?|[\u3400-\u9fff]{1,8}[\w\u3400-\u9fff]{0,12}?)"
    r"\s*(?:=|[:：](?!//))\s*"
    + _VALUE.format("s", r"[^\s…，。；,;!！?？][^，。；;!！?？\n]{0,119}?")
    + r"\s*[.。!！]*$"
)
SLOT_IS = _re(
    r"^(?:the |our |my |its )?(?P<key>[a-z][\w-]*(?: [a-z][\w-]*){0,2}) (?:is|are|should be|will be|must be) "
    r"(?:now |set to )?" + _VALUE.format("i", r"(?=\S*[\d_/.@-]|(?-i:[A-Z]))[\w@/.:+~-]{1,120}") + r"\W*$"
    r"|^(?:请|我们的?|我的|把)?(?P<key2>[\u3400-\u9fffa-z_][\w\u3400-\u9fff]{0,12}?)(?:现在|应该|先|就)?(?:是|"
    r"为|叫|改成|改为|换成|设成|设为|设置为|用)\s*"
    + _VALUE.format("z", r"[\w@/.:+~-]*[A-Za-z0-9][\w@/.:+~-]{0,120}?(?:[个月号日点元页行字年]|号端口)?")
    + r"\W*$"
    r"|^set (?:the )?(?P<key3>[a-z][\w -]{0,30}?) to " + _VALUE.format("t", r"[\w@/.:+~-]{1,120}") + r"\W*$"
)
NO_NAME = re.compile(r"^(?:不|没|别|无)|(?:都|也|再|还|就|只)$")  # a key is a noun: no negation, no adverb at its end
NO_SLOT = frozenset(
    "this that it he she they there here what which who the problem issue reason error note todo next step "
    "steps goal task "
    "answer question example e.g i.e ps fyi update result results plan warning tip hint remaining http https 这 "
    "那 它 他 她 我 "
    "你 您 这个 那个 问题 原因 目标 任务 需求 结果 答案 注意 备注 例如 比如 待办 下一步 接下来 错误 计划 步骤 "
    "我们 因为 不 要 都 只 "
    "必须 不要 可以 以后 今天 用户 总结 说明 但 所以 现在 应该".split()
)
