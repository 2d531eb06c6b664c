"""One fault is one line: file, line, key, what is wrong, what to do."""

import re
from pathlib import Path

import pytest

from local.policy import Fault, PolicyError, load, resolve
from steward.errors import ConfigError
from tests.unit.policy.documents import DONT_LEND, TEAM, TEXT, edited, faults
from tests.unit.policy.key_mistakes import KEY_MISTAKES
from tests.unit.policy.rule_mistakes import RULE_MISTAKES

MISTAKES = KEY_MISTAKES | RULE_MISTAKES


@pytest.mark.parametrize("what", MISTAKES)
def test_a_fault_names_file_line_key_and_remedy(what: str, path: Path) -> None:
    mistake = MISTAKES[what]
    (fault,) = faults(path, edited(mistake.old, mistake.new))  # one mistake is one fault
    assert fault.startswith(f"{path}:{mistake.line()}: {mistake.key}: ")
    assert mistake.message in fault
    assert mistake.remedy in fault.split("; ", 1)[1]


def test_every_fault_is_named_at_once_in_the_order_of_the_lines(path: Path) -> None:
    text = edited("    tick: 5m", "    tick: 1m")
    text = edited("        channel: gpu-research", "        channel: gone", text)
    text = edited("        accelerators: 10", "        accelerators: 11", text)
    text = edited("schema: 1", "schema: 1\nslak: {}", text)
    lines = faults(path, text)
    keys = [re.sub(r"^.*?:\d+: (\S+): .*$", r"\1", line) for line in lines]
    # the sum is a fault between keys: the bad channel and tick do not hide it
    assert keys == ["slak", "clusters[0].tick", "clusters[0].teams", f"{TEAM}.channel"]


def test_the_message_of_the_error_is_one_line_that_holds_them_all(path: Path) -> None:
    # replay prints it as the one line that it owes for a bad policy
    path.write_text(edited("    tick: 5m", '    tick: "1m\\n"\n    "a\\nb": 1'), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert "\n" not in str(caught.value)
    assert "clusters[0].tick" in str(caught.value)
    assert "clusters[0].a b" in str(caught.value)


def test_resolve_tells_every_fault_with_its_key_path() -> None:
    with pytest.raises(PolicyError) as caught:
        resolve({"schema": 1, "slack": {"channels": {}, "platform_channel": "x"}, "clusters": []})
    assert caught.value.faults == (
        Fault(
            ("clusters",),
            "[]: List should have at least 1 item after validation, not 0",
            "expected: The clusters to watch",
        ),
        Fault(("slack", "platform_channel"), "there is no channel x", "there is none"),
    )


def test_a_value_of_a_wrong_kind_is_a_fault_and_not_a_crash(path: Path) -> None:
    # what reads the raw document meets lists where names should be
    (line,) = faults(path, edited(DONT_LEND, "          strategy: [DontLend]"))
    assert "clusters[0].teams[2].sharing.strategy: " in line
    assert '["DontLend"] is not allowed' in line


@pytest.mark.parametrize("capacity", ["[]", "4", "[4]", "[{instance_type: ml.p5.48xlarge}]"])
def test_quotas_are_not_held_against_a_capacity_that_cannot_be_read(
    capacity: str, path: Path
) -> None:
    begin, end = TEXT.index("    capacity:"), TEXT.index("    # Shown beside every cost")
    text = f"{TEXT[:begin]}    capacity: {capacity}\n{TEXT[end:]}"
    assert "above the capacity" not in " ".join(faults(path, text))
