"""Reading a statement: one pass over its tokens that gives terms with their place and their denials.

Purpose: `Reader` is the step from text to terms; claims.analyze_claim is its only caller. The place of a term (topic,
value, condition) follows from the verb and the prepositions before it; a denial reaches to the end of its clause.

Threading: a Reader lives for one call and belongs to one thread.

Rejected: part-of-speech tags and parses (memories are short, elliptic and in two languages; a model for that costs more
than the embedding).
"""

from __future__ import annotations

import re
from functools import lru_cache

from memsvc.memory.conflict import words
from memsvc.memory.conflict.lexicon import (
    COUNTS,
    DENY_LATIN,
    HAN,
    HAN_DIGITS,
    HAN_LONGEST,
    HAN_SCALES,
    HAN_UNITS_LONGEST,
    LATIN,
    LATIN_SCALES,
    LOOSE_UNITS,
    MONTHS,
    PARITY_POLES,
    PHRASE_STARTS,
    SURNAMES,
    UNITS,
    Group,
    Sense,
    Term,
    Zone,
    han_name,
    han_value,
)

TERMS_MAX = 64
_GONE = re.compile(
    r"\b(?:gone|discontinued|dropped|removed|retired|deprecated|revoked|died|left)\b|作废|取消|废弃|下线|没了|停掉"
)
_CONDITION_LATIN = frozenset(
    "for in of on with when if during before after by per within while touching from about under unless "
    "until except".split()
)
_PLACED = frozenset("live run move work be".split())  # after these verbs, `in X` and `on X` are the value
_TOKEN = re.compile(
    r"(?P<zone>\b(?:utc|gmt)[+-]\d{1,2}\b)"
    r"|(?P<clock>\d{1,2}[:：]\d{2}(?:\s*[ap]m\b)?|\d{1,2}\s*[ap]m\b)"
    r"|(?P<ordinal>\d+(?:st|nd|rd|th)\b)"
    r"|(?P<date>\d{4}[-/]\d{1,2}[-/]\d{1,2})"
    r"|(?P<version>v?\d+(?:\.\d+){2,}\b|v\d+(?:\.\d+)*\b)"
    r"|(?P<ident>(?=[\w./@-]*\d)[a-z_~./][\w./@+-]*\w|[\w~][\w.-]*[/@][\w./@-]+|[a-z]\w*(?:[._]\w+)+"
    r"|\d+(?:[.-]\d+){2,}|\d+[a-z]{1,2}\d\w*)"
    r"|(?P<number>\d[\d,]*(?:\.\d+)?)(?P<scale>\s?(?:万|亿|千|k\b|million\b|thousand\b))?"
    r"|(?P<word>[^\W\d_\u3400-\u9fff]+(?:['’-][^\W\d_\u3400-\u9fff]+)*[+#]*)"
    r"|(?P<han>[\u3400-\u9fff]+)"
    r"|(?P<break>[,;:.!?，；：。！？、()（）\n]+)"
    r"|(?P<sign>[%$€£¥°])",
    re.IGNORECASE,
)
_SIGN_UNITS = {"%": "pct", "$": "money", "€": "money", "£": "money", "¥": "money", "°": "degree"}
_TIMES = ("次", "回")  # 每周一次 is once a week, not Monday
_NOT_COUNTED = frozenset("of another is was by that who should can may must".split())
_ON_AFTER = frozenset("is are was turned switched stays remains be been".split())
_term = lru_cache(maxsize=4096)(Term)  # there are few different ones: claims share them, and fit the caches


class Reader:
    """One pass over a text. Not shared between threads; lives for one call."""

    def __init__(self, text: str, lowered: str) -> None:
        self.text = text
        self.lowered = lowered
        self.terms: dict[str, Term] = {}
        self.odd = False
        self._zone = Zone.VALUE
        self._seen_switch = False
        self._seen_word = False
        self._placed = False
        self._updated = False
        self._deny_left = 0
        self._clause: list[str] = []
        self._clause_start = 0
        self._number: tuple[float, bool] | None = None  # a number that waits for its unit; whether it is a clock's
        self._month_open = False
        self._late = False

    def read(self) -> None:
        """Fills `terms` and `odd`."""
        tokens = list(_TOKEN.finditer(self.lowered))
        skip = 0
        for place, match in enumerate(tokens):
            if skip:
                skip -= 1
                continue
            kind = match.lastgroup
            if kind == "scale":
                kind = "number"
            if kind == "word":
                skip = self._word(tokens, place)
            elif kind == "han":
                self._han(match.group())
            elif kind == "number":
                self._flush_number("")
                value = float(match.group("number").replace(",", ""))
                scale = match.group("scale")
                self._number = (value * LATIN_SCALES[scale.strip()] if scale else value, False)
            elif kind == "sign":
                self._sign(match.group())
            elif kind == "break":
                self._end_clause(match.group(), self.lowered[self._clause_start : match.start()])
                self._clause_start = match.end()
            else:
                self._mark(kind or "", match.group())
            if len(self.terms) >= TERMS_MAX:
                break
        self._flush_number("")
        self._end_clause("", self.lowered[self._clause_start :])
        if self._seen_switch:
            return
        # A statement without a verb that parts it is all value: only then can any of its terms be another value.
        self.terms = {
            name: _term(t.weight, t.kind, t.group, Zone.VALUE if t.zone == Zone.TOPIC else t.zone, t.denied)
            for name, t in self.terms.items()
        }

    def _add(self, concept: str, kind: str, group: Group, weight: float, denied: bool = False) -> None:
        denied ^= self._deny_left > 0
        if self._deny_left and weight >= 0.5:
            self._deny_left -= 1
        zone = self._zone if self._seen_switch else (Zone.CONDITION if self._zone == Zone.CONDITION else Zone.TOPIC)
        known = self.terms.get(concept)
        if known is not None:
            # said twice, once denied: what is asserted counts for poles, what is denied for values
            if known.denied != denied:
                self.terms[concept] = _term(known.weight, kind, group, known.zone, False)
            return
        self.terms[concept] = _term(weight, kind, group, zone, denied)
        self._clause.append(concept)
        if weight >= 0.5:
            self._seen_word = True

    def _sense(self, sense: Sense) -> None:
        """A word of the tables."""
        role = sense.role
        if role == "deny":
            self.odd = not self.odd
            self._deny_left = 4
            return
        if role in ("exclusive", "additive", "update"):
            self._seen_switch = True
            self._zone = Zone.VALUE
            self._placed = True
            if role == "update":
                self._deny_left = 0
                self._updated = True
        if not sense.concept or role == "frame":
            return
        if sense.kind == "daypart" and sense.concept in ("afternoon", "night", "evening"):
            self._late = True
        if sense.group == Group.POLE and sense.denied and sense.concept in PARITY_POLES:
            self.odd = not self.odd
            self._add(sense.concept, sense.kind, sense.group, sense.weight, True)
            if sense.concept in ("allow", "like"):
                self._deny_left = 4
            return
        self._add(sense.concept, sense.kind, sense.group, sense.weight, sense.denied)

    def _word(self, tokens: list[re.Match[str]], place: int) -> int:
        """A Latin word, or the phrase that begins with it; how many further tokens it took."""
        match = tokens[place]
        word = match.group().replace("’", "'")
        if self._number is not None:
            unit = UNITS.get(word, "")
            if unit or word not in MONTHS:
                self._flush_number(unit)
                if unit:
                    return 0
        bare = word.removesuffix("'s")
        if bare in PHRASE_STARTS:
            taken, sense = self._phrase(tokens, place, bare)
            if sense is not None:
                self._sense(sense)
                return taken
        negated = word.replace("'", "")
        if negated in DENY_LATIN or (negated.endswith("nt") and "'" in word):
            few = negated in ("instead", "rather")
            self.odd ^= negated not in ("instead", "rather", "sold")
            self._deny_left = 1 if few else 4
            return 0
        if word in ("because", "due", "since"):
            self._deny_left = 0
        if word in COUNTS and not (word == "one" and not self._counts(tokens, place)):
            self._number = (COUNTS[word], False)
            return 0
        if word in MONTHS and (word not in ("may", "march", "mar") or self.text[match.start()].isupper()):
            self._month(MONTHS[word])
            return 0
        self._plain_word(tokens, place, word, bare)
        return 0

    def _plain_word(self, tokens: list[re.Match[str]], place: int, word: str, bare: str) -> None:
        """A word that is no number, month, phrase or denial."""
        match = tokens[place]
        if word in _CONDITION_LATIN or word in ("to", "over", "but", "than"):
            self._preposition(word)
        first = self.text[match.start()]
        if place == 0 and word == "keep":
            return
        if word == "go" and not first.isupper():
            return
        if word == "on" and (place + 1 == len(tokens) or tokens[place + 1].lastgroup == "break"):
            bare = "on_state" if place and tokens[place - 1].group() in _ON_AFTER else "a"
        sense = LATIN.get(bare) or LATIN.get(words.stem(bare))
        if len(bare) == 1 and bare.isalpha():
            if first.isupper() and (match.start() > 0 or bare not in "ai") and bare != "i":
                self._add(f"'{bare}", "letter", Group.MARK, 1.0)
            return
        if sense is not None:
            self._sense(sense)
            return
        is_name = first.isupper() and (match.start() > 0 or word.endswith("'s"))
        self._add(words.stem(bare), "name" if is_name else "word", Group.NAME if is_name else Group.WORD, 1.0)
        return

    def _phrase(self, tokens: list[re.Match[str]], place: int, first: str) -> tuple[int, Sense | None]:
        for size in (3, 2):
            following = tokens[place + 1 : place + size]
            if len(following) == size - 1 and all(m.lastgroup == "word" for m in following):
                rest = [m.group().removesuffix("'s") for m in following]
                sense = LATIN.get("_".join([first, *rest])) or LATIN.get(
                    "_".join([first, *rest[:-1], rest[-1].rstrip("s")])
                )
                if sense is not None:
                    return size - 1, sense
        return 0, None

    def _counts(self, tokens: list[re.Match[str]], place: int) -> bool:
        """Whether the "one" at this place counts what follows."""
        following = tokens[place + 1] if place + 1 < len(tokens) else None
        return following is not None and following.lastgroup == "word" and following.group() not in _NOT_COUNTED

    def _preposition(self, word: str) -> None:
        if word in ("to", "but"):
            self._deny_left = 0
            if self._seen_switch and word == "to":
                self._zone = Zone.VALUE
        elif word == "from":
            self._deny_left = int(self._updated)  # "moved from X" gives X up, "suffers from X" doesn't
        elif word == "over":
            if self._seen_switch and self._seen_word:
                self._deny_left = 1
        elif word != "than" and self._seen_word and self._seen_switch:
            self._zone = Zone.VALUE if self._placed and word in ("in", "on", "by", "of", "within") else Zone.CONDITION
            self._placed = False

    def _month(self, month: int) -> None:
        if self._number is not None:
            self._flush_number("mday")
        self._add(f"#mon:{month}", "#mon", Group.NUMBER, 0.7)
        self._month_open = True

    def _sign(self, sign: str) -> None:
        if self._number is not None:
            self._flush_number(_SIGN_UNITS[sign])

    def _flush_number(self, unit: str) -> None:
        if self._number is None:
            self._month_open = False
            return
        value, _ = self._number
        self._number = None
        if not unit and self._month_open and value <= 31:
            unit = "mday"
        self._month_open = False
        if unit == "clock":
            value = value % 12 * 60
        if unit == "week":
            value, unit = value * 7, "day"
        if unit == "hour" and value % 24 == 0:
            value, unit = value / 24, "day"
        if unit in ("", "year") and 1900 <= value <= 2100 and value % 1 == 0:
            unit = "yr"
        name = "" if unit in LOOSE_UNITS else unit
        self._add(f"#{name}:{value:g}", f"#{unit}", Group.NUMBER, 1.0)

    def _mark(self, kind: str, text: str) -> None:
        self._flush_number("")
        if kind == "clock":
            hour, _, rest = text.replace("：", ":").partition(":")
            digits = re.sub(r"\D", "", hour)
            minutes = int(digits) % 12 * 60 + (int(rest[:2]) if rest else 0)
            self._add(f"#clock:{minutes}", "#clock", Group.NUMBER, 1.0)
        elif kind == "ordinal":
            self._number = (float(re.sub(r"\D", "", text)), False)
            self._flush_number("mday")
        elif kind == "version":
            self._add(f"v{text.removeprefix('v')}", "version", Group.MARK, 1.0)
        else:
            sense = LATIN.get(text)
            if sense is not None:
                self._sense(sense)
            else:
                self._add(text, "ident", Group.MARK, 1.0)

    def _end_clause(self, sign: str, clause: str) -> None:
        self._flush_number("")
        self._deny_left = 0
        if _GONE.search(clause):
            self.odd = not self.odd
            for concept in self._clause:
                t = self.terms[concept]
                self.terms[concept] = _term(t.weight, t.kind, t.group, t.zone, not t.denied)
        if sign[:1] in ("、", "("):
            return
        if sign[:1] in (":", "：") and self._seen_word and not self._seen_switch:
            self._seen_switch = True
            self._zone = Zone.VALUE
        self._clause = []

    def _han(self, run: str) -> None:
        """A run of Chinese: the longest known word at each place, numerals with their unit, else single "
        "characters.
        """
        at, size = 0, len(run)
        unknown = 0
        while at < size:
            if self._number is not None:
                taken = self._han_unit(run, at)
                if taken:
                    at += taken
                    unknown = at
                    continue
                self._flush_number("")
            word, sense = self._longest(run, at)
            if len(word) < 3 and (named := han_name(run, at, len(word))):
                self._unknown(run[unknown:at])
                self._add(run[at : at + named], "name", Group.NAME, 1.0)
                at += named
                unknown = at
                continue
            if sense is None:
                taken = self._han_number(run, at)
                if not taken:
                    at += 1
                    continue
                self._unknown(run[unknown:at])
                at += taken
                unknown = at
                continue
            self._unknown(run[unknown:at])
            self._sense(sense)
            at += len(word)
            unknown = at
        self._unknown(run[unknown:])

    def _longest(self, run: str, at: int) -> tuple[str, Sense | None]:
        for size in range(min(HAN_LONGEST, len(run) - at), 0, -1):
            word = run[at : at + size]
            sense = HAN.get(word)
            if sense is not None and not (sense.kind == "weekday" and run[at + size : at + size + 1] in _TIMES):
                return word, sense
        return "", None

    def _han_number(self, run: str, at: int) -> int:
        """Reads a numeral that a unit or the end follows; how many characters it took, 0 for none."""
        end = at
        while end < len(run) and (run[end] in HAN_DIGITS or run[end] in HAN_SCALES):
            end += 1
        if end == at:
            return 0
        if run[end : end + 1] == "月":
            self._add(f"#mon:{han_value(run[at:end]):g}", "#mon", Group.NUMBER, 0.7)
            self._month_open = True
            return end + 1 - at
        followed = end == len(run) or any(run[end : end + n] in UNITS for n in (3, 2, 1))
        if not followed:
            return 0
        self._number = (han_value(run[at:end]), False)
        return end - at

    def _han_unit(self, run: str, at: int) -> int:
        """Closes the open number with the unit that follows it; how many characters the unit took."""
        for size in range(HAN_UNITS_LONGEST, 0, -1):
            word = run[at : at + size]
            if len(word) == size and word in UNITS:
                unit = UNITS[word]
                if unit == "clock":
                    return self._han_clock(run, at, size)
                if unit == "mon":
                    value, _ = self._number or (0.0, False)
                    self._number = None
                    self._add(f"#mon:{value:g}", "#mon", Group.NUMBER, 0.7)
                    self._month_open = True
                    return size
                self._flush_number(unit)
                return size
        return 0

    def _han_clock(self, run: str, at: int, size: int) -> int:
        """Closes the open number as a time of day: 十点, 八点半, 八点四十."""
        value, _ = self._number or (0.0, False)
        self._number = None
        minutes, end = 0.0, at + size
        if run[at : at + 2] == "点半":
            minutes, end = 30.0, at + 2
        else:
            digits = end
            while digits < len(run) and run[digits] in "一二三四五十":
                digits += 1
            if digits > end:
                minutes, end = han_value(run[end:digits]), digits
        self._add(f"#clock:{value % 12 * 60 + minutes:g}", "#clock", Group.NUMBER, 1.0)
        return end - at

    def _unknown(self, run: str) -> None:
        """Chinese that no table knows: a name by its look, else characters at half a weight."""
        if not run:
            return
        if 2 <= len(run) <= 3 and (run[0] in SURNAMES or (run[0] in "小老阿" and run[1] in SURNAMES)):
            self._add(run, "name", Group.NAME, 1.0)
            return
        for character in run:
            self._add(character, "han", Group.HAN, 0.5)
