"""English patterns of the cues, over lower-cased text with straight apostrophes.

Purpose: what each cue looks like in English.

Threading: constants.

Rejected: stemming first (contractions and word order are what tells a wish from a report).
"""

from __future__ import annotations

from memsvc.memory.funnel.cue import Cue

# Imperatives that ask for one piece of work now. With a lasting marker they are a wish for all times, without one
# they are this turn's task.
_TASK_VERBS = (
    "write|make|rename|set|show|book|translate|fix|run|add|open|send|find|give|put|change|compare|explain|order|read|"
    "pause|play|draft|rerun|try|double|skip|remove|delete|create|generate|list|check|look|pull|convert|summari[sz]e|"
    "rewrite|proofread|paraphrase|plan|start|stop the|turn|wake|remind|cancel the|help|tell|let|leave|move|sort|search|"
    "suggest|recommend|shorten|cut|edit|update|install|build|commit|push|merge|print|export|download|upload|refactor|"
    "format|calculate|count|copy|paste|schedule|call joe|pick|do the|do that|keep going|continue|go ahead|redo|undo|"
    "go with whatever|use the|use a|use this|use that|drop the|swap|replace|test|debug|deploy|restart|revert|ping|"
    "review|describe|outline|brainstorm|define|solve|grab|get me|bring|take"
)

ENGLISH: dict[int, str] = {
    Cue.QUESTION: r"\?\W*$|^(?:so |and |but |ok |wait,? |hey,? |um,? |sorry,? )*when(?:'s| (?:do|does|did|is|are|"
    r"was|were|will|can|should|would|has|have|could))\b|^(?:so |and |but |ok |wait,? |sorry,? )*(?:is|"
    r"isn't|are|aren't|was|wasn't|were|does|doesn't|did|didn't|has|hasn't) \w|^(?:so |and |but |ok |"
    r"wait,? |hey,? |um,? |sorry,? )*(?:what|why|how|who|which|where|whose)(?:'s|'re|"
    r"'d)?\b(?! i (?:say|ask|send|give|write|book|mention)| you (?:explain|write|book|send|cite|make|"
    r"give|answer|reply|quote|suggest|show)| there'?s| it comes| we say| someone|"
    r" a customer)(?!.*, (?:please|i |always|never|just|the why))|^(?:so |and |but |ok |"
    r"wait,? )*(?:do|does|did|is|isn't|are|aren't|was|were|can|could|would|will|won't|should|"
    r"shouldn't|has|have|had|don't|doesn't|didn't|am|must|may|might|shall|wouldn't|couldn't|"
    r"can't) (?:i|you|we|they|he|she|it|there|this|that|the|my|our|your|any|anyone|someone|somebody|"
    r"nobody|people|every|all|users|members|customers|refunds)\b(?! picked| used| known| we)|"
    r"\b(?:wondering (?:if|whether)|i wonder|not sure (?:if|whether|which)|any ideas?\b|"
    r"tell me (?:what|who|how|why|which|when|where|if)|i forget|remind me (?:what|who|how|which)|"
    r"no idea (?:if|whether|what)|am i imagining|did you\b|can you (?:check|tell)|thoughts)\b|"
    r", right$|agree$",
    Cue.HYPOTHETICAL: r"\b(?:if (?:i|we|they|he|she|you)'d|would've|could've|if i (?:were|was|had)|if we (?:had|"
    r"were)|if only|imagine|suppose|supposing|pretend|what if|hypothetically|for argument'?s sake|"
    r"let'?s say|say (?:a|i|we|the) \w+ never|assume for|for a second|what would happen|"
    r"role[- ]?play|let'?s imagine|in theory|had (?:we|i|they) \w+|would(?:n't)? have|could have|"
    r"should(?:'?ve| have)|as if i|say i(?:'m| am| had)|were i|if they asked|spitballing|"
    r"thought experiment|in a parallel|in another life|back then .* would)\b",
    Cue.UNDECIDED: r"\b(?:might|maybe|perhaps|dunno|not (?:yet )?decided|nothing(?:'s| is) decided|undecided|haven't "
    r"(?:decided|made up|settled|picked|chosen)|no decision|torn between|toying with|thinking (?:of|about|out loud)|"
    r"we'?ll see|depends on|could be that|considering|on the fence|leaning|probably|not final|don't (?:take|"
    r"treat) this "
    r"as|some ?day|one day|can't decide|still (?:debating|deciding|weighing|thinking)|up in the air|tempted|"
    r"tentative(?:ly)?|possibly|open question|if it works out|nothing is final|don't quote me)\b",
    Cue.WISH: r"\b(?:ideal world|one can dream|would be (?:lovely|nice|great|cool|amazing)|wouldn'?t it be|i wish|"
    r"if only|i'd love to (?:live|have|be|own|see)|dream(?:ing)? (?:of|about)|a man can dream|"
    r"can't wait)\b",
    Cue.REPORTED: r"\b(?:blog|article|tweet|reddit|post|docs?|influencer|movie|film|song|novel|book|story|poem|"
    r"lyrics|colleague|neighbou?r(?:'s)?|friend(?:'s)?|reviewer|guy|someone|somebody|podcast|youtuber|"
    r"villain|character|guru|he|she|they|her|their|his|aunt|teacher|dentist|coach|barber|hairdresser|"
    r"trainer|grandfather|grandma|grandpa|stranger|ceo|manual|sign|horoscope|video|hacker news|"
    r"stack overflow|horoscope|fortune cookie|ad|meme|brother|uncle|roommate)\b.{0,40}\b(?:says?|said|"
    r"claims?|claimed|wrote|writes|shouts?|orders?|told|goes|insists?|swears?|reckons?|tweeted|posted|"
    r"argues?|telling|swear by|only eats|orders everyone|used to say|keeps telling)\b|\b(?:told her|"
    r"told him|according to (?:some|a|the internet))\b|\bstyle guide says\b|^this tweet\b|\b(?:in the|"
    r"the) (?:movie|film|show|series|book|novel|game)\b",
    Cue.WORDING: r"^(?:please |can you |could you |pls )?(?:translate|proofread|paraphrase|rephrase|fix the typos?|"
    r"check the grammar|correct this|edit this|polish|reword|rewrite|write a (?:scene|story|poem|"
    r"dialogue|song)|improve "
    r"this sentence|how would you translate|spell ?check|finish (?:this|the) (?:sentence|line|lyric)|punctuate|"
    r"is this sentence)\b|\bfrom (?:my|the|a) (?:novel|story|script|screenplay|poem|play)\b|\b(?:line|"
    r"sentence) (?:of|in|from) my\b|\bof my (?:short )?(?:story|novel)\b|\bmake (?:this|it) (?:sound|punchier|less|"
    r"more formal)|\b(?:turn|put) this (?:into|in) (?:the )?(?:passive|active|past)|\bin my (?:story|novel|script|"
    r"game)\b|\b(?:my|the) character\b",
    Cue.SARCASM: r"^(?:oh|wow|ah|gee|yeah|right|sure|well)?,? ?(?:oh )?(?:great|wonderful|brilliant|fantastic|"
    r"lovely|perfect|amazing|awesome|nice|super|splendid)[,.!] (?:another|just|exactly|now|so|it|only|"
    r"more|and|yet)|exactly what i "
    r"(?:needed|wanted)|just what i (?:needed|wanted|always)|thanks for nothing|what could (?:possibly )?go wrong|"
    r"i just "
    r"love it when|i love (?:it when|how|doing)|because who (?:doesn't|needs)|by all means|keep (?:it up|"
    r"up the good)|congratulations,? (?:you|on)|please always do that|clearly your plan|truly\.$|as if\b|"
    r"\bslow clap|fantastic service|genius move|best feature ever|on a roll|bravo|how generous|lucky me|"
    r"best idea ever",
    Cue.MOOD: r"\b(?:ugh+|argh+|grr+|sucks?|garbage|crap|hate (?:mondays|this|it|my life)|i'?m so (?:done|tired|"
    r"bored|sick)|so tired|exhausted|driving me|fed up|annoy(?:ed|ing)|frustrat(?:ed|ing)|ridiculous|"
    r"worst|stressed|bored|feeling (?:kinda |a bit |so |really )?(?:down|great|good|low|sad|lazy|meh)|"
    r"feel like (?:crying|screaming)|in the mood|losing patience|kill me|pissed|furious|angry|nightmare|"
    r"unbelievable|omg|wtf|ffs|god i|i swear|out to get me|can't be bothered|terrible|awful|horrible|"
    r"a mess|taking forever|never again|evil|yay|woo+hoo|finally|so happy|pretty happy|over the moon|"
    r"gutted|meh|hungry|sleepy|want to (?:scream|cry|quit)|ugly|joke of a|useless|wrecked)\b",
    Cue.ONE_OFF: r"\b(?:this time|just (?:this|the) once|just once|(?:this|that) once|for now|for today|today only|"
    r"for (?:this|the next|the rest of)|for a change|in this (?:email|chart|slide|draft|one|snippet|"
    r"recipe|paragraph|letter|reply|message|thread|chat|exercise|file|function|section|post|document|"
    r"page|image|table)|on this (?:page|slide|one|form)|this (?:one|snippet|trip|exercise|paragraph|"
    r"draft|slide) only|only this|while we'?re in this|right now|from here on "
    r"down|hold off|don't .{2,25} yet|until i(?:'ve| say| look| read| come| find)|in this one|tonight|yet\b|"
    r"minutes from "
    r"now|temporarily|for the moment|first (?:ten|10|five|20|few) (?:rows|lines)|instead of the usual|today$|"
    r"as a test|one more time|at the end of line|before you (?:continue|go on)|until the \w+(?: \w+)? (?:is|"
    r"are) (?:over|done|finished|through)|before i(?:'ve| have)|later today|this afternoon|this session)\b",
    Cue.REQUEST: r"^(?:please |pls |from now on,? |from today,? |always |never |by default,? |going forward,? |now |"
    r"then |ok,? |and |also |hey,? |just |quickly |let'?s |so |actually,? )*(?:"
    + _TASK_VERBS
    + r")\b|\b(?:can|could|would|will) (?:you|we|someone)\b|\bhelp me\b|\bi need you to\b|\blet me (?:test|see|"
    r"check|look)\b|^(?:don't|do not|no) .{0,40}\b(?:yet|here|this|exercise|snippet)\b",
    Cue.PHATIC: r"^(?:hi+|hey+|hello|yo|good (?:morning|afternoon|evening|night)|morning|evening|thanks?(?: you)?|"
    r"thx|ta|cheers|ok(?:ay)?|cool|great|perfect|nice|lol|haha+|sure|yep|yes|yeah|no worries|right|bye|"
    r"see you|brb|afk|sorry|welcome|happy (?:friday|monday|new year|birthday|holidays)|merry)\b|"
    r"\b(?:weather|weekend plans|how's your day|how are you|talk later|have a (?:good|great|lovely|"
    r"nice)|let me know if|happy to help|glad (?:to|that)|you'?re "
    r"welcome|much appreciated|no problem|traffic)\b",
    Cue.ADOPTED: r"\b(?:follow (?:that|this|it)|so that'?s how|that'?s how we|that'?s the rule|we go by|"
    r"stick to (?:that|this|it)|let'?s (?:do|follow|adopt|stick)|we(?:'re| are) (?:adopting|following)|"
    r"applies to us|from now on|so be it|so we (?:will|do|must)|as of today|effective|goes for us|"
    r"make it so|and i agree|we'll do (?:the same|that)|same for us)\b",
    Cue.LASTING: r"\b(?:from now on|always|never|by default|going forward|every (?:time|single)|each time|whenever|"
    r"unless (?:i|told|otherwise|we)|(?:don't|no|not|ever) .{0,40}\bever\b|ever again|permanently|"
    r"for good|in all (?:my|our)|in (?:every|each|any) \w+|at all times|any ?time|as a (?:rule|default|"
    r"standard)|all (?:my|our|of my)|across all|from here on|until further notice|in future|"
    r"in the future|from today|as of (?:now|today|this)|for every|each (?:month|week|day)|everywhere|"
    r"any time|henceforth|all the time|i usually|usually|normally|standing|no exceptions?|these days|"
    r"nowadays|still|without (?:asking|being asked)|every (?:day|week|month|morning|evening|night|"
    r"doc\w*|report|summary|answer|reply|email|service|repo\w*)|the same way|for any|hard rule|stays?|"
    r"consistently|my standard|our standard|when(?:ever)? (?:i|you|we) (?:ask|send|give|explain|write|"
    r"book|answer|cite|quote|suggest|make|show|say|mention|share)|for all|anything with|if i (?:ask|"
    r"send|say|forget|don't)|the usual)\b",
    Cue.PREFER: r"\b(?:prefer\w*|i(?:'d| would) (?:rather|like)|i like|i love|i hate|i can'?t stand|"
    r"i don'?t (?:like|want|eat|drink|need|read|use)|i want|i just want|i only (?:want|use|read|shop|"
    r"eat|drink|fly)|not a fan|works (?:better|best) for me|easier (?:for me|to follow)|for how i|"
    r"i learn best|i find|i take|i'm (?:not )?asking|skip|avoid|favou?rite|my preference|rather than|"
    r"instead of|beats?|is fine|are fine|fine but|please keep|keep (?:it|your|my|meetings|replies|"
    r"answers|tables|the|that)|stick to|no (?:more|phone|calls|emojis?)|lead with|hold yourself|"
    r"tune out|wears me|distracts me|gets? on my nerves|give me|show me|send me|or up|at most|max|"
    r"suits me|means more to me)\b",
    Cue.REMEMBER: r"\b(?:remember (?:that|this|:|,|i|my|we|our|the|he|she)|please remember|pls remember|"
    r"keep in mind|bear in "
    r"mind|note (?:that|for later|to self|down)|for (?:the record|context|your info(?:rmation)?|future reference|"
    r"later)|don'?t forget|make a note|take note|jot down|save this|fyi|just so you know|you should know|"
    r"thing you should know|good to know|write (?:this|that) down|store (?:this|that)|memori[sz]e)\b|^note:|"
    r"^remember\b",
    Cue.DECIDED: r"\b(?:decided|decision|settled?|going with|go(?:ing)? (?:with|for)|went (?:with|for)|picked|chose|"
    r"chosen|we'?ll (?:use|stay|keep|go|take|do)|we will (?:use|stay|keep|go|stick)|will stay on|"
    r"dropp(?:ed|ing)|(?:is|are|they're|it's) "
    r"(?:out|in|gone|dead)\b|agreed (?:to|on|that)|signed with|final answer|made up my mind|it is\b(?=,|\.|$)|"
    r"scrapp(?:ed|ing)|killed|kill(?:ing)? (?:off|the)|won'?t (?:renew|use|do|go)|dealbreaker|we(?:'re|"
    r" are) (?:keeping|dropping|staying|switching|moving|going|postponing|ditching|sticking|using|not doing)|"
    r"no \w+ for (?:the|our)|opted|ruled out|i'll take (?:the|option|plan)|over \w+ because|rejected|approved the|"
    r"stopping|selling|voted|verdict|conclusion|instead of building|we(?:'re| are) not (?:going|using|building|"
    r"doing))\b",
    Cue.OBLIGE: r"\b(?:must(?:n't)?|needs? (?:a|an|to|two|both|one|at least|approval|sign\w*|written|manager)|"
    r"requires?|required|has to|have to|had to be|gets? (?:two|a second|an extra)|shall|mandatory|"
    r"goes? through|go to|need approval|need(?:s)? \w+ approval|sign(?:ed|s)? off|are to be|is to be|"
    r"should (?:bounce|be|never|always)|obligatory|two (?:reviewers|approvals?|signatures)|"
    r"skip the queue|must be|compulsory|expected to)\b",
    Cue.THRESHOLD: r"\b(?:over|above|under|below|at least|at most|no more than|more than|less than|fewer than|"
    r"max(?:imum)?|min(?:imum)?|up to|within|limit(?:ed)?|cap(?:ped)?|starts? at|valid for|"
    r"per (?:day|week|person|order|year|user|customer|passenger)|before (?:noon|\d|end)|after (?:\d|"
    r"noon)|no later than|except|cutoff|deadline for all|threshold|once (?:a|per))\b",
    Cue.CORRECTION: r"\b(?:correction|scratch that|i (?:mis(?:spoke|typed)|meant|gave you the wrong|was wrong|"
    r"mixed)|turns out|actually|not .{1,30} like i said|typo|my mistake|wrong (?:one|name|number|"
    r"date|size)|(?:it'?s|is|was|are) not .{1,40}(?:,|but|it'?s)|isn't .{1,40} any ?more|no longer|"
    r"never (?:did|moved|switched|got|used|made)|we never|isn't .{1,40}[,.] (?:it'?s|they|we)|"
    r"outdated|your (?:note|record|info)|not a \w+ (?:shop|site|team|developer)|i'?m not (?:a|an|"
    r"the)|contrary to|don't get me "
    r"wrong|it(?:'s| is)n't that|it'?s not that|the other way)\b|^no,",
    Cue.CHANGED: r"\b(?:moved (?:to(?! (?:next|tomorrow|the \d|\d|mon|tues|wednes|thurs|fri|satur|sun))|from|into)|"
    r"transferred|changed to|switched (?:to|from)|replaced by|is now|are now|(?<!from )now (?:called|"
    r"at|on|in)|renamed|since (?:january|february|march|april|may|june|july|august|september|october|"
    r"november|december|last|monday|the)|as of|became|just became|took over|got (?:married|promoted|"
    r"divorced)|any ?more|nowadays|these days|used to|instead|(?:go|goes|ships?) (?:to|from|"
    r"through) \w+ now|(?<!right )\bnow$|closed|retired|promoted|rebranded|merged with|relocated|"
    r"joined|left the|quit my)\b",
    Cue.SELF: r"\b(?:i'?m|i am|i have|i'?ve got|i've|i got|my|mine|i (?:work|live|use|drive|speak|teach|run|report|"
    r"own|study|rent|play|cook|read|take|wear|follow|do|eat|drink|travel|commute|train|manage|lead|"
    r"look after|moved|transferred|sign))\b",
    Cue.GROUP: r"\b(?:we|we're|we've|our|ours|us|the (?:team|company|office|client|customer|warehouse|lab|clinic|"
    r"school|shop))\b",
    Cue.TRAIT: r"\b(?:allerg\w+|left[- ]handed|vegan|vegetarian|diabet\w+|asthma|coeliac|celiac|pregnant|"
    r"colou?r[- ]?blind|dyslexi\w+|intoleran\w+|migraine\w*|hearing aids?|wheelchair|deaf|blind|adhd|"
    r"insomnia|blood type|tinnitus|epilep\w+|halal|kosher|daughter|son|kids?|wife|husband|mum|mom|dad|"
    r"mother|father|partner|grandma|baby|cat|dog|birthday|married|single|divorced|nurse|doctor|teacher|"
    r"engineer|developer|manager|designer|student|lawyer|admin|freelanc\w+|accountant|chef|director|"
    r"owner|founder|pilot|analyst|plan|seats?|tier|firmware|router|android|ios|iphone|pixel|galaxy|"
    r"windows|macos|linux|ubuntu|version|model|based in|office|boss|landlord|lease|policy number|account|"
    r"customer no|member|landline|mortgage|insurance|team lead|from (?:berlin|paris|london)|native)\b",
    Cue.OUTCOME: r"\b(?:fixed|resolved|finished|completed?|shipped|released|deployed|published|rolled (?:out|back)|"
    r"migrat(?:ed|ion finished)|passed|sold|signed|confirmed|root cause|found it|came (?:out|back)|"
    r"issued|cancelled|canceled|restored|rotated|closed|moved \d+|got back|got the job|got my|lost the|"
    r"we lost|finish(?:ed)?|succeeded|failed permanently|suspended|rolled|approved|refunded|"
    r"returned to sender|upgraded?|replaced|switched (?:the|off|to)|settled|done for|went well|"
    r"are green|in a row|broken into|landed|delivered|launched|went live|live (?:now|for)|caused by|"
    r"came from|no (?:failures|tickets|errors|complaints) (?:for|since)|rebooked|booked|paid|won|hired|"
    r"aborted|reverted|runs again|works again|arrived|came in the mail|promoted|graduated|survived|"
    r"repaired|solved|merged|tested|shut down|decommissioned|expired|investigation|postmortem|incident|"
    r"outage|we top out|bottleneck|adopted|enabled|removed)\b",
    Cue.CAUSE: r"\b(?:root cause|caused by|came from|because of|was due to|cause:|the (?:culprit|reason|fix|"
    r"bottleneck)|it was (?:the|a)|turned out|after (?:adding|setting|moving|upgrading|raising)|"
    r"so (?:every|all|each)|breaking|must now|is now|blocked until|were missing|skipped|failed|"
    r"minimum .{2,15} is now|use `)\b",
    Cue.REASON: r"\b(?:because|since|so that|due to|otherwise|reason|as (?:it|we|they|the)|given that|"
    r"too (?:expensive|slow|many|much|high|risky|heavy)|would (?:double|cost|starve|break|take)|"
    r"can'?t (?:afford|run|trust|handle)|costs? too|couldn't|has no|have no|no \w+,|told us|"
    r"already knows|doesn't support|is trademarked)\b| so ",
    Cue.DATED: r"\b(?:tomorrow|tonight|next (?:week|month|year|mon|tue|wed|thu|fri|sat|sun)\w*|(?:on|until|till|by|"
    r"this|from|is) "
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day(?!s)|(?:jan|feb|mar|apr|jun|jul|aug|sep|oct|nov|"
    r"dec)[a-z]*\.? \d{1,2}(?:st|nd|rd|th)?\b|\d{1,2}(?:st|nd|rd|th)?(?: of)? (?:january|february|march|april|may|"
    r"june|july|august|september|october|november|december)|may \d{1,2}(?:st|nd|rd|th)?\b|the \d{1,2}(?:st|nd|rd|"
    r"th)\b(?! floor| time| try| grade| century| generation)|in (?:two|three|a|\d+) "
    r"(?:days?|weeks?|months?)|(?:mon|tues|wednes|thurs|fri|satur|sun)day(?!s)\b|\d{4}-\d{2}-\d{2}|(?:expires|due|"
    r"deadline) (?:on|is|in|by))\b",
    Cue.RECURRING: r"\b(?:every (?:other )?(?:day|week|month|year|morning|evening|night|mon|tue|wed|thu|fri|sat|"
    r"sun)\w*|(?:mon|tues|wednes|thurs|fri|satur|sun)days|daily|weekly|monthly|yearly|annually|"
    r"each (?:day|week|month|year|quarter)|twice a (?:day|week|month)|once a (?:day|week|month|year)|"
    r"on weekdays|weekends|per week|quarterly|billed|renews|fiscal year|financial year)\b",
    Cue.PROHIBIT: r"\b(?:never|forbidden|prohibited|banned|not allowed|may not|can'?t be|cannot be|mustn't|must not|"
    r"do not ever|no \w+ after|no \w+ (?:before|on|without|in)|off limits|isn't allowed|"
    r"aren't allowed|under no|nobody (?:may|is)|only \w+ (?:can|may|is "
    r"allowed|are allowed)|no (?:merge|returns|deploys|exceptions|refunds|customer)|can'?t (?:approve|access|sign|"
    r"exchange|edit))\b",
    Cue.FEEDBACK: r"\b(?:stop \w+ing|quit \w+ing|please stop|no more|don'?t (?:explain|add|use|call|send|ping|give|"
    r"put|write|make|schedule|ask|start|apologi[sz]e|show|tell|suggest|repeat)|too (?:long|many|wordy|"
    r"chatty|verbose)|your last|keeps? (?:adding|using|sending|calling)|drop the|get in the way|"
    r"i'm not a fan|leave out|leave .{2,20} out)\b",
    Cue.NAMING: r"\b(?:call me|call (?:it|them|us)|is called|are called|called \w+|name is|named|goes by|pronouns|"
    r"nickname|we say|they'?re \w+s\b|known as|spell(?:ed)? (?:it|as)|legally|rebranded|refer to|"
    r"stands for|short for|i go by|surname)\b",
    Cue.PLAN: r"\b(?:i'?ll|i will|i'm going to|let me|next i|i can|looking into|checking|one moment|please hold|"
    r"running the|shall i|would "
    r"you like|do you want|could you|please (?:share|paste|send|provide|tell|wait|hold)|here(?:'s| is| are)|i think|"
    r"i don'?t have access|i can'?t see|apologi[sz]e|i'?m (?:really |so |very )?sorry|sure,|of course|may take|"
    r"in progress|i'd (?:suggest|recommend))\b",
    Cue.GENERAL: r"\b(?:means that|just means|in general|generally|typically|usually|best practice|most \w+|"
    r"is a \w+ (?:that|which)|are \w+ while|refers to|consists? of|is produced|lets? only|"
    r"to \w+ a \w+, (?:hold|press|click|run|use)|is known|in (?:python|git|java|rust|go|sql|css|http|"
    r"excel|docker|linux|kubernetes|javascript|typescript),|you (?:can|should|could)|the capital of|"
    r"which means)\b",
    Cue.ADDRESSED: r"\b(?:you|your|yours|with me|for me|to me|me)\b",
    Cue.RULE_WORD: r"\b(?:policy|policies|rule|rules|regulation|sla|compliance|auditor'?s?|procurement|approval|"
    r"standard|convention|reviewers?|sign-?off|contract|legal(?:ly)?|prs?|merge|deploys?|refunds?|"
    r"returns?|interns?|drivers|customers|guests|tenants|visitors|employees|hires|vendors?|expenses|"
    r"transfers?|migrations|retro|postmortem|everyone|anyone|anything touching|all \w+s (?:have|must|"
    r"need)|in every service|every new|orders|accounts?|discount|warranty)\b",
    Cue.PAST: r"\b(?:yesterday|last (?:night|week|month|year|mon|tue|wed|thu|fri|sat|sun)\w*|(?:on )?(?:mon|tues|"
    r"wednes|thurs|fri|satur|sun)day|this morning|just (?:got|finished|came|passed)|ago|today|earlier|"
    r"over the weekend|in the end|after \d+ (?:days|weeks|months))\b",
    Cue.ORG: r"\b(?:ltd|inc|gmbh|llc|plc|corp|headcount|fiscal|tenant|warehouse|branch|head office|subsidiary|"
    r"competitor|supplier|carrier|our (?:client|users|stack|api|product|app|repo|server|database|prod|"
    r"staging)|prod|staging|production|environment|repo|monorepo|cluster|database|api|service|vpn)\b",
    Cue.THIS: r"\b(?:this|that|these|those|it|here|the (?:last|attached|other|first|second|same))\b",
}
