"""What Slack's answers mean: each that is not ok becomes the error that says what can be done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from steward.alerts.errors import (
    ChannelError,
    CredentialsError,
    DeliveryError,
    MessageGoneError,
    NotAcceptedError,
    RefusedContentError,
    UnknownOutcomeError,
)

REST_SECONDS = 30.0
"""Taken for Retry-After where a 429 comes without a readable one."""

# Error codes: docs.slack.dev, chat.postMessage, chat.update, chat.delete, conversations.history,
# conversations.replies, users.lookupByEmail, users.info, views.open; response URLs answer with the
# same ones, and with two of their own.
_CONTENT = frozenset(
    {
        "invalid_arguments",
        "invalid_attachments",
        "invalid_blocks",
        "invalid_blocks_format",
        "invalid_metadata_format",
        "invalid_metadata_schema",
        "invalid_payload",
        "metadata_too_large",
        "msg_blocks_too_long",
        "msg_too_long",
        "no_text",
    }
)
_CHANNEL = frozenset(
    {
        "channel_not_found",
        "channel_type_not_supported",
        "is_archived",
        "is_inactive",
        "method_not_supported_for_channel_type",
        "not_in_channel",
        "restricted_action",
        "restricted_action_non_threadable_channel",
        "restricted_action_read_only_channel",
        "restricted_action_thread_only_channel",
    }
)
_CREDENTIALS = frozenset(
    {
        "access_denied",
        "account_inactive",
        "invalid_auth",
        "missing_scope",
        "no_permission",
        "not_allowed_token_type",
        "not_authed",
        "org_login_required",
        "team_access_not_granted",
        "token_expired",
        "token_revoked",
    }
)
_GONE = frozenset(
    {
        # the message to edit or delete
        "cant_delete_message",
        "cant_update_message",
        "compliance_exports_prevent_deletion",
        "edit_window_closed",
        "message_not_found",
        # the message to reply to
        "cannot_reply_to_message",
        "restricted_action_thread_locked",
        "thread_not_found",
        # the member
        "user_not_found",
        "user_not_visible",
        "users_not_found",
        # the press or command to answer
        "exchanged_trigger_id",
        "expired_trigger_id",
        "expired_url",
        "invalid_trigger_id",
        "used_url",
    }
)
"""What the call is about does not exist, or not any more."""

_RATE = frozenset({"rate_limited", "ratelimited"})
_UNCERTAIN = frozenset({"fatal_error", "internal_error", "update_failed"})
"""Slack says of these that some of the operation may have succeeded."""

_MEANINGS: tuple[tuple[frozenset[str], Callable[[str], DeliveryError], str], ...] = (
    (_CONTENT, RefusedContentError, ""),
    (_CHANNEL, ChannelError, " (unarchive it, invite the bot, or correct the policy)"),
    (_CREDENTIALS, CredentialsError, " (renew the token, or grant the scope)"),
    (_GONE, MessageGoneError, ""),
    (_UNCERTAIN, UnknownOutcomeError, ""),
)


def refusal(
    doing: str, status: int, data: Mapping[str, Any], headers: Mapping[str, str]
) -> DeliveryError:
    """Turn an answer that is not ok into the error that says what can be done about it.

    Parameters
    ----------
    doing : str
        What Slack was asked: the method, and what it is about.
    status : int
        Of HTTP.
    data : mapping
        The answer's JSON object; empty where it is none.
    headers : mapping of str to str
        The answer's, names in any case.
    """
    code = str(data.get("error", ""))
    about = f"Slack {doing}: {code or status}{_pointer(data)}"
    if status == 429 or code in _RATE:
        rest = _retry_after(headers)
        return NotAcceptedError(f"{about}: wait {rest:g} s", retry_after_seconds=rest)
    for codes, kind, remedy in _MEANINGS:
        if code in codes:
            return kind(f"{about}{remedy}")
    return NotAcceptedError(about) if _is_refusal(data) else UnknownOutcomeError(about)


def _is_refusal(data: Mapping[str, Any]) -> bool:
    # slack_sdk makes up an answer of its own where the body is no JSON; its error is a sentence.
    return data.get("ok") is False and " " not in str(data.get("error", " "))


def _pointer(data: Mapping[str, Any]) -> str:
    """Say where in the message, or which scope, where Slack tells."""
    told = [*((data.get("response_metadata") or {}).get("messages") or [])]
    told += [f"needs the scope {data['needed']}"] if data.get("needed") else []
    return f": {'; '.join(str(line) for line in told)}" if told else ""


def _retry_after(headers: Mapping[str, str]) -> float:
    lowered = {name.lower(): value for name, value in headers.items()}
    try:
        return max(0.0, float(lowered.get("retry-after", REST_SECONDS)))
    except ValueError:
        return REST_SECONDS
