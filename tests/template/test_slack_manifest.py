"""The Slack app's manifest asks for what the code calls, and for nothing else."""

from pathlib import Path

from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
MANIFEST = YAML(typ="safe", pure=True).load((ROOT / "examples/slack-app-manifest.yaml").read_text())

SCOPES = {
    # docs.slack.dev, "Scopes and permissions" of each method; views.open needs none.
    "chat.postMessage": {"chat:write"},
    "chat.update": {"chat:write"},
    "chat.delete": {"chat:write"},
    "conversations.history": {"channels:history", "groups:history"},
    "conversations.replies": {"channels:history", "groups:history"},
    "users.info": {"users:read", "users:read.email"},
    "users.lookupByEmail": {"users:read.email"},
    "auth.test": set[str](),
    "views.open": set[str](),
}


def test_it_asks_for_the_scopes_of_the_methods_that_are_called() -> None:
    sinks = "".join(
        path.read_text() for path in (ROOT / "layers/steward/steward/sinks").glob("*.py")
    )
    called = {method for method in SCOPES if f'"{method}"' in sinks}
    assert called == SCOPES.keys()  # one that is not called any more is a scope too many
    needed = set[str]().union(*SCOPES.values()) | {"commands"}
    assert set(MANIFEST["oauth_config"]["scopes"]["bot"]) == needed


def test_presses_and_commands_go_to_the_same_address() -> None:
    (command,) = MANIFEST["features"]["slash_commands"]
    interactivity = MANIFEST["settings"]["interactivity"]
    assert command["command"] == "/gpu"
    assert command["url"] == interactivity["request_url"]
    assert "AnswerSlackUrl" in command["url"]
    # Slack would turn names of people and channels into its own ids, and what is typed would change.
    assert command["should_escape"] is False
