"""Where Slack's requests arrive: what the template says of Function URLs and queues."""

import pytest

from local.replay import ROOT
from local.routing import read_routes
from steward.errors import ConfigError

HEAD = """
Parameters: {}
Resources:
"""
FUNCTION = """
  {name}:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: functions/{folder}/
      {url}
"""


def template(path, **urls):
    made = [
        FUNCTION.format(name=folder.title(), folder=folder, url=url) for folder, url in urls.items()
    ]
    (path / "template.yaml").write_text(HEAD + "".join(made))
    return path / "template.yaml"


def test_slacks_requests_arrive_at_the_one_function_with_an_address():
    routes = read_routes(ROOT / "template.yaml")
    assert routes.answering == "answer_slack"


def test_commands_are_polled_one_at_a_time():
    routes = read_routes(ROOT / "template.yaml")
    assert routes.pollers[routes.queue_behind("COMMANDS_URL")] == ("run_command", 1)


@pytest.mark.parametrize(
    ("urls", "named"),
    [
        ({"answer": "", "other": ""}, "no function"),
        (dict.fromkeys(("b", "a"), "FunctionUrlConfig: {AuthType: NONE}"), "['a', 'b']"),
    ],
)
def test_a_template_without_one_address_is_refused_where_it_is_needed(tmp_path, urls, named):
    routes = read_routes(template(tmp_path, **urls))
    with pytest.raises(ConfigError, match="has a FunctionUrlConfig") as caught:
        _ = routes.answering
    assert str(caught.value).startswith(f"template.yaml: {named} ")
