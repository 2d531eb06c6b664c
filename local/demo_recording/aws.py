"""What the AWS CLI prints of the demo's cluster, and the one event of the day."""

from local.demo_recording.documents import Json, fill
from local.demo_recording.script import CLASSES, INSTANCES, QUOTAS, uid


def answers() -> dict[str, Json]:
    """Build the answers and the event, by the path of their file without its suffix."""
    quotas, identities = [], []
    for team, gpus in QUOTAS.items():
        sharing: Json = {"Strategy": "LendAndBorrow", "BorrowLimit": 50}
        if team == "product-genai":
            sharing = {"Strategy": "DontLend"}
        identifier = uid("ComputeQuota", team).replace("-", "")[:12]
        values = {"team": team, "gpus": gpus, "sharing": sharing, "id": identifier}
        quotas += fill("answers/compute_quota", values)
        account = {"namespace": f"hyperpod-ns-{team}", "serviceAccount": f"{team}-jobs"}
        association = {"associationId": f"a-{identifier}", "clusterName": "ml-shared-01-eks"}
        identities.append(association | account)
    (config,) = fill("answers/scheduler_config")
    nodes = [one for i in INSTANCES for one in fill("answers/cluster_node", {"instance": i})]
    classes = [{"Name": name, "Weight": weight} for name, weight in CLASSES.items()]
    values = {"nodes": nodes, "quotas": quotas, "config": config, "classes": classes}
    (sagemaker,) = fill("answers/sagemaker", values)
    (eks,) = fill("answers/eks", {"identities": identities})
    (event,) = fill("answers/event", {"instance": INSTANCES[3]})
    return {
        "events/node-healthy": event,
        **{f"sagemaker/{name}": one for name, one in sagemaker.items()},
        **{f"eks/{name}": one for name, one in eks.items()},
    }
