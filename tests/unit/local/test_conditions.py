"""A template's conditions, decided for one deployment."""

import pytest

from local.conditions import decide
from steward.errors import ConfigError

TEMPLATE = {
    "Parameters": {
        "Stage": {"Type": "String", "Default": "test"},
        "Names": {"Type": "CommaDelimitedList", "Default": ""},
    },
    "Conditions": {
        "IsTest": {"Fn::Equals": [{"Ref": "Stage"}, "test"]},
        "Named": {"Fn::Not": [{"Fn::Equals": [{"Fn::Join": ["", {"Ref": "Names"}]}, ""]}]},
        "NamedTest": {"Fn::And": [{"Condition": "IsTest"}, {"Condition": "Named"}]},
    },
    "Resources": {
        "Always": {
            "Type": "AWS::SQS::Queue",
            "Properties": {
                "QueueName": {"Fn::If": ["Named", {"Fn::If": ["IsTest", "t", "p"]}, "nameless"]},
                "KmsMasterKeyId": {"Fn::If": ["IsTest", {"Ref": "AWS::NoValue"}, "key"]},
                "Tags": [{"Fn::If": ["Named", "named", {"Ref": "AWS::NoValue"}]}, "last"],
                "Condition": {"StringEquals": {"a": "b"}},  # a policy's, not CloudFormation's
            },
        },
        "Sometimes": {"Type": "AWS::SQS::Queue", "Condition": "NamedTest"},
    },
    "Outputs": {"Url": {"Condition": "Named", "Value": {"Ref": "Sometimes"}}},
}


def always(**parameters):
    return decide(TEMPLATE, **parameters)["Resources"]["Always"]["Properties"]


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({}, "nameless"),
        ({"Names": "a,b"}, "t"),
        ({"Names": "a,b", "Stage": "production"}, "p"),
    ],
)
def test_an_if_is_the_branch_of_its_condition(given, name):
    assert always(**given)["QueueName"] == name


def test_a_branch_without_value_is_left_out_of_mappings_and_lists():
    assert "KmsMasterKeyId" not in always()
    assert always(Stage="production")["KmsMasterKeyId"] == "key"
    assert always()["Tags"] == ["last"]
    assert always(Names="a")["Tags"] == ["named", "last"]


def test_what_has_a_condition_is_there_where_it_holds():
    assert set(decide(TEMPLATE)["Resources"]) == {"Always"}
    assert set(decide(TEMPLATE, Names="a")["Resources"]) == {"Always", "Sometimes"}
    assert decide(TEMPLATE)["Outputs"] == {}
    assert set(decide(TEMPLATE, Names="a")["Outputs"]) == {"Url"}


def test_nothing_is_left_to_decide_and_a_policys_condition_stays():
    decided = decide(TEMPLATE, Names="a")

    assert "Conditions" not in decided
    assert decided["Resources"]["Sometimes"] == {"Type": "AWS::SQS::Queue"}
    assert always()["Condition"] == {"StringEquals": {"a": "b"}}


def test_a_condition_of_another_make_is_named():
    conditions = TEMPLATE["Conditions"] | {"Named": {"Fn::Contains": [["a"], "a"]}}
    template = TEMPLATE | {"Conditions": conditions}

    with pytest.raises(ConfigError, match="Fn::Contains"):
        decide(template)
