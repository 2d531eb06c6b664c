"""What Slack shows, as plain dicts: text, limits and cards. Pure: it sends nothing."""
