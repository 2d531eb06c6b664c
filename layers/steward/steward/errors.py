"""The three ways in which something can go wrong; adapters raise them, use cases decide."""


class StewardError(Exception):
    """Base of every error the product raises on purpose: says what, where and the remedy."""


class RetryableError(StewardError):
    """May succeed later without anybody's help: a timeout, a 5xx, a throttled call."""


class PermanentError(StewardError):
    """Stays wrong until somebody changes something: denied, not found, refused content."""


class ConfigError(StewardError):
    """The policy, a setting or a recording is wrong; the text names file, line, key and remedy."""


class DeniedError(PermanentError):
    """The caller lacks the permission (401, 403, AccessDenied)."""


class NotInstalledError(PermanentError):
    """The API or add-on does not exist there (404): nothing to say, not a fault."""


class ConflictError(RetryableError):
    """Somebody else wrote first (HTTP 412 or 409): read again and repeat."""
