"""Equal facts, equal revision: what a message is to show, and what it is known to show."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def revision(content: Mapping[str, Any]) -> str:
    """Digest a message's facts."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
