"""Rules between keys, in particular between clusters."""

from pathlib import Path

from local.policy import load
from tests.unit.policy.documents import ENDPOINT, TEXT, faults


def second_cluster(*changes: tuple[str, str]) -> str:
    """Write the example with a copy of its cluster, changed in places."""
    copy = TEXT[TEXT.index("  - name: ml-shared-01") :]
    for old, new in changes:
        assert copy.count(old) == 1
        copy = copy.replace(old, new)
    return f"{TEXT}\n{copy}"


RENAMED = ("  - name: ml-shared-01 #", "  - name: ml-shared-02 #")


LABEL = "      # cluster_label: ml-shared-01"


def test_clusters_may_have_the_same_teams_but_not_the_same_name(path: Path) -> None:
    elsewhere = (ENDPOINT, "https://prometheus.example.com")
    path.write_text(second_cluster(RENAMED, elsewhere), encoding="utf-8")
    assert [cluster.name for cluster in load(path).clusters] == [
        "ml-shared-01",
        "ml-shared-02",
    ]
    (line,) = faults(path, second_cluster(elsewhere))
    assert "clusters[1].name: cluster ml-shared-01 is already at clusters[0].name" in line


def test_clusters_that_share_a_workspace_need_their_label(path: Path) -> None:
    label = (LABEL, "      cluster_label: ml-shared-02")
    same = (ENDPOINT, f"{ENDPOINT}/")  # a slash at the end is the same endpoint
    lines = faults(path, second_cluster(RENAMED, label, same))
    # the second one says its label, the first does not
    assert [line.split(": ")[1] for line in lines] == ["clusters[0].metrics.cluster_label"]
