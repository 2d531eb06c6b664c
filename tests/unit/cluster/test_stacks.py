"""The line that looks at a hang: it is pasted into a shell, so a shell runs it here."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from steward.cluster.commands import stacks
from tests.builders import a_holder

KUBECTL = """#!/bin/sh
# kubectl -n <namespace> exec <pod> -- <command>: runs it here, and says where it was asked to.
echo "$2/$4"
shift 5
exec "$@"
"""
PY_SPY = '#!/bin/sh\necho "stack of $3"\n'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    for name, text in (("kubectl", KUBECTL), ("py-spy", PY_SPY)):
        tool = tmp_path / name
        tool.write_text(text)
        tool.chmod(0o755)
    return tmp_path


def pasted(line: str, path: Path) -> list[str]:
    env = os.environ | {"PATH": f"{path}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["/bin/sh", "-c", line], capture_output=True, text=True, env=env, check=False
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="reads /proc, as a pod has it")
def test_the_line_shows_the_stack_of_every_python_process_of_every_pod(path: Path) -> None:
    rank = subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE
    )
    try:
        said = pasted(stacks([a_holder(pod="sweep-1"), a_holder(), a_holder()]), path)
    finally:
        rank.communicate()
    ours = [line for line in said if line == f"stack of {rank.pid}" or "/" in line]
    assert [line for line in ours if not line.startswith("/")] == [
        "hyperpod-ns-research/sweep-0",
        f"stack of {rank.pid}",
        "hyperpod-ns-research/sweep-1",
        f"stack of {rank.pid}",
    ]


def test_names_are_quoted_and_many_pods_do_not_make_an_endless_line() -> None:
    line = stacks(a_holder(pod=f"a b;{n}", namespace="n$s") for n in range(20))
    words = shlex.split(line)
    assert words[:3] == ["for", "pod", "in"]
    assert [word for word in words if word.startswith("a b;")] == sorted(
        f"a b;{n}" + ("" if number < 7 else ";")
        for number, n in enumerate((0, 1, 10, 11, 12, 13, 14, 15))
    )
    assert "n$s" in words
    assert len(line) < 1000  # what a card without blocks has room for
