"""Whatever is typed is answered, and nothing of it speaks through the answer."""

import re

from hypothesis import example, given, settings
from hypothesis import strategies as st

from steward.slack.command_line import USAGES
from tests.unit.alerts.nouns import a_finding
from tests.unit.usecases.test_run_command import Rig

RIG = Rig(a_finding())
WORDS = st.sampled_from([*USAGES, "in", "ml-shared-01", "evidence", "exempt-help", "4h"])
TEXT = st.lists(WORDS | st.text(max_size=30), max_size=6).map(" ".join)
DATE = re.compile(r"<!date\^\d+\^\{date_short_pretty\} \{time\}\|[0-9: -]+UTC>")


@settings(max_examples=400, deadline=None)
@given(text=TEXT)
@example(text="why <!channel>")
@example(text="evidence <@U1>/<!here>")
def test_anything_is_answered_or_handed_on_and_nothing_foreign_acts(text: str) -> None:
    RIG.actions.clear()
    told = RIG.ask(text)
    assert told or RIG.actions
    assert "<" not in DATE.sub("", told)
