"""What a handler must not import before it is asked: module lists are stable, milliseconds are not."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

NEVER = {"pydantic", "aws_xray_sdk", "moto", "werkzeug", "local"}
LAZY = {"boto3", "slack_sdk", "urllib3"}
"""Paid for where they are used, not where a handler is loaded."""


@pytest.mark.parametrize("function", sorted(p.name for p in (ROOT / "functions").iterdir()))
def test_loading_a_handler_imports_no_client(function):
    program = f"import sys; import functions.{function}.handler; print(*sys.modules)"
    path = [str(ROOT), str(ROOT / "layers" / "steward"), *filter(None, sys.path)]
    program = f"import sys; sys.path[:0] = {path!r}\n{program}"
    done = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True
    )
    roots = {name.partition(".")[0] for name in done.stdout.split()}
    assert "steward" in roots
    assert roots & NEVER == set()
    assert roots & LAZY == set()
