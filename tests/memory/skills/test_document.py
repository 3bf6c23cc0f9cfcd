"""skill.yaml: what is read, every problem with its place, and no other error than InvalidArgument for any text."""

from __future__ import annotations

import string

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memsvc.errors import InvalidArgument, LimitExceeded
from memsvc.memory.skills.document import (
    DEPTH_MAX,
    KEYS,
    NODES_MAX,
    SOURCE_MAX_BYTES,
    Document,
    MemoryRef,
    Parameter,
    parse,
)
from memsvc.model import MemoryType

GOOD = """\
name: deploy-service
description: Rolls a service out.
trigger: When somebody asks to deploy a service.
version: 1.20
parameters:
  - name: env
    description: Where to.
    default: staging
    required: true
  - name: replicas
    default: 3
memory_refs:
  - parameter: env
    subject: deploy.environment
    type: preference
steps:
  - Check that {env} is healthy.
  - "Scale to {replicas}: then wait for ${HOME} and {{env}}"
  - |
    kubectl apply -f '{"a": 1}'
"""


def problems(text: str) -> list[str]:
    with pytest.raises(InvalidArgument) as caught:
        parse(text)
    assert caught.value.field == "source"
    return caught.value.message.splitlines()


def test_a_good_one_is_read_whole():
    assert parse(GOOD) == Document(
        name="deploy-service",
        description="Rolls a service out.",
        trigger="When somebody asks to deploy a service.",
        label="1.20",
        parameters=(Parameter("env", "Where to.", "staging", True), Parameter("replicas", "", 3)),
        memory_refs=(MemoryRef("env", "deploy.environment", "", MemoryType.PREFERENCE),),
        steps=(
            "Check that {env} is healthy.",
            "Scale to {replicas}: then wait for ${HOME} and {{env}}",
            "kubectl apply -f '{\"a\": 1}'",
        ),
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("-0.5", -0.5),
        ("1e3", 1000.0),
        ("true", True),
        ("null", None),
        ("yes", "yes"),
        ("no", "no"),
        ("12:30:00", "12:30:00"),
        ("2025-01-10", "2025-01-10"),
        ("'3'", "3"),
        ("0x10", "0x10"),
        ("9" * 30, 1e30),
        ("1e999", "1e999"),
        ("[a, 1, {b: false}]", ["a", 1, {"b": False}]),
    ],
)
def test_defaults_are_read_as_json_would(text, value):
    found = parse(GOOD.replace("default: 3", f"default: {text}")).parameters[1].default
    assert found == value
    assert type(found) is type(value)


def test_all_problems_come_at_once_in_order_with_line_and_column():
    text = (
        GOOD.replace("{env} is", "{envv} is").replace("subject:", "subjct:").replace("name: deploy-", "name: Deploy ")
    )
    assert problems(text) == [
        "line 1, column 7: name must be lower-case words with hyphens, such as deploy-service",
        "line 13, column 5: memory_refs[0] needs subject or query",
        "line 14, column 5: memory_refs[0] has no key subjct; did you mean subject?",
        "line 17, column 5: steps[0] uses {envv}, which is not a parameter; did you mean {env}?",
    ]


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        ("name: deploy-service\n", "", "line 1, column 1: name is missing"),
        ("version:", "verson:", "line 4, column 1: skill.yaml has no key verson; did you mean version?"),
        ("version: 1.20", "name: b", "line 4, column 1: name is there twice; the first is on line 1"),
        ("version: 1.20", "xyzzy: 1", "line 4, column 1: skill.yaml has no key xyzzy; the known ones are name, "),
        ("Rolls a service out.", "", "line 2, column 13: description is empty"),
        ("Rolls a service out.", "null", "line 2, column 14: description is empty"),
        ("Rolls a service out.", "x" * 1025, "line 2, column 14: description has 1025 characters, the limit is 1024"),
        ("Rolls a service out.", "[a]", "line 2, column 14: description must be text, not a list"),
        ("    required: true", "    required: yes", "line 9, column 15: parameters[0].required must be true or false"),
        ("name: replicas", "name: env", "line 10, column 11: parameters[1]: there is a parameter env already"),
        ("name: replicas", "name: 1st", "line 10, column 11: parameters[1].name must be letters"),
        ("parameter: env", "parameter: enw", "line 13, column 16: memory_refs[0] fills enw, no parameter; did you "),
        ("type: preference", "type: preferense", "line 15, column 11: memory_refs[0].type preferense is unknown; did"),
        ("- Check that", "- Check: that", "line 17, column 5: steps[0] must be text, not a mapping; quote it"),
        ("staging", "*staging", "line 8, column 14: aliases (*) are not allowed"),
        ("staging", "&a staging", "line 8, column 14: anchors (&) are not allowed"),
        ("staging", "!!python/object:os.system x", "line 8, column 14: tags (!) are not allowed"),
        ("staging", '"\\UFFFFFFFF"', "line 8, column "),
        ("staging", '"\\uD800"', "line 8, column 14: parameters[0].default must be text of"),
        ("Rolls", '"\\uD800"', "line 2, column "),
        ("staging", "'open", "line "),
        ("staging", "\x01", "line 8, column 14: a control character"),
        ("steps:", "---\nsteps:", "line 16, column 1: a second document"),
        ("staging", "[" * DEPTH_MAX, "line 8, column "),
    ],
)  # fmt: skip
def test_each_problem_names_its_place(old, new, want):
    assert old in GOOD
    assert any(line.startswith(want) for line in problems(GOOD.replace(old, new, 1))), problems(
        GOOD.replace(old, new, 1)
    )


@pytest.mark.parametrize("text", ["", "# nothing", "---\n", "just text", "- a list", "42", "[]", "{}"])
def test_what_is_no_skill(text):
    assert problems(text)[0].startswith("line ")


def test_limits():
    with pytest.raises(LimitExceeded) as caught:
        parse("#" * (SOURCE_MAX_BYTES + 1))
    assert caught.value.field == "source"
    assert "more than" in problems("steps: [" + "a," * NODES_MAX + "]")[0]
    many = GOOD + "  - a step\n" * 200
    assert problems(many) == ["line 17, column 3: steps has 203 entries, the limit is 100"]


def test_a_flood_of_problems_is_cut_and_counted():
    text = "".join(f"key{i}: {i}\n" for i in range(500))
    lines = problems(text)
    assert lines[-1].startswith("and ")
    assert sum(map(len, lines)) < 2500


def test_a_bomb_of_aliases_is_refused_at_its_first_anchor():
    text = "a: &a [x]\nb: &b [*a,*a]\nc: [*b,*b]\n"
    assert problems(text) == ["line 1, column 4: anchors (&) are not allowed"]


SIGNS = " -_:{}[]#&*!|>'\"%@`\\\n\t中文é\x85\u2028\ud7ff"
NESTED_KEYS = [*KEYS, "parameter", "subject", "query", "default", "required"]
WORDS = st.text(alphabet=string.ascii_letters + string.digits + SIGNS, max_size=30)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NESTED_KEYS) | WORDS, inner, max_size=5)
    ),
    max_leaves=20,
)


def check(text: str) -> None:
    try:
        document = parse(text)
    except InvalidArgument as error:
        field, message = error.field, error.message
    else:
        assert document.steps
        assert document.name
        return
    assert field == "source"
    assert message


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=400) | WORDS)
@example("\ud800")
@example("%YAML " + "9" * 5000 + ".1\n---\na")
@example("%YAML 1.1\n%YAML 1.1\n---\na")
@example("a: \x00")
@example("? [a]\n: b")
@example("!<tag:yaml.org,2002:str> a")
@example('"\\x')
@example("\ufeffname: a")
@example("[" * 2000)
@example("- " * 2000)
@example("{a: " * 500)
def test_any_text_gives_a_skill_or_invalid_argument(text):
    check(text)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=7))
def test_any_yaml_gives_a_skill_or_invalid_argument(value):
    check(yaml.safe_dump(value, allow_unicode=True, sort_keys=False))


@settings(max_examples=300, deadline=None)
@given(st.integers(0, len(GOOD)), st.integers(0, 12), WORDS)
def test_any_edit_of_a_good_one_gives_a_skill_or_invalid_argument(at, cut, new):
    check(GOOD[:at] + new + GOOD[at + cut :])
