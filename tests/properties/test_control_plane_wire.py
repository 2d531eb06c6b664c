"""Whatever an item of a list is, it costs nothing but itself."""

import json
from typing import Any

from botocore.parsers import create_parser
from botocore.session import get_session
from hypothesis import given
from hypothesis import strategies as st

from steward.sources.control_plane.fields import listing
from steward.sources.control_plane.nouns import read_node
from steward.sources.control_plane.wire import mend

OPERATION = get_session().get_service_model("sagemaker").operation_model("ListClusterNodes")
PARSER = create_parser("json")
GOOD = {
    "InstanceGroupName": "gpu-a",
    "InstanceId": "i-1",
    "InstanceType": "ml.p5.48xlarge",
    "LaunchTime": 1790841600,
    "InstanceStatus": {"Status": "Running"},
}
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3)
    ),
    max_leaves=6,
)
ODD = ANYTHING | st.dictionaries(
    st.sampled_from([*GOOD, "UltraServerInfo", "PrivateDnsHostname", "New"]), ANYTHING
).map(lambda members: GOOD | members)


def sent(items: list[Any]) -> dict[str, Any]:
    body = json.dumps({"ClusterNodeSummaries": items}).encode()
    return {"status_code": 200, "headers": {}, "body": body}


@given(st.lists(ODD, max_size=3), st.lists(ODD, max_size=3))
def test_a_sound_item_is_read_whatever_stands_beside_it(
    before: list[Any], after: list[Any]
) -> None:
    answer = sent([*before, GOOD, *after])
    mend(answer, OPERATION)
    shape = OPERATION.output_shape
    assert shape is not None
    parsed = PARSER.parse(answer, shape)
    found = listing(parsed, "ClusterNodeSummaries", read_node, "InstanceId")
    (sound,) = listing(
        PARSER.parse(sent([GOOD]), shape), "ClusterNodeSummaries", read_node, "InstanceId"
    ).found
    assert sound in found.found
    # Every item is read or named, none is lost on the way.
    assert len(found.found) + len(found.faults) == len(before) + 1 + len(after) == found.seen


@given(st.lists(st.just(GOOD), max_size=3))
def test_an_answer_in_its_services_form_is_left_as_it_is(items: list[Any]) -> None:
    answer = sent(items)
    assert mend(answer, OPERATION) == []
    assert answer == sent(items)
