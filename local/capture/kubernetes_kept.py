"""Which members of Kubernetes' objects a capture keeps, drops and replaces: data."""

ANNOTATIONS = (
    "eks.amazonaws.com/role-arn",
    "gpu-steward/",
    "kueue.x-k8s.io/",
    "sagemaker.amazonaws.com/",
)
"""Annotations that are kept, by name or by what the name begins with."""

OWNERS = frozenset(
    {
        "deployments",
        "hyperpodpytorchjobs",
        "jobs",
        "jobsets",
        "pytorchjobs",
        "rayclusters",
        "rayjobs",
        "replicasets",
        "statefulsets",
    }
)
"""Objects of job controllers, of which free text is dropped wherever it stands."""

NAMED_AFTER_JOBS = OWNERS | {"pods", "workloads"}
DROPPED = frozenset(
    {
        "args",
        "command",
        "data",
        "entrypoint",
        "env",
        "envFrom",
        "generateName",
        "httpHeaders",
        "images",
        "managedFields",
        "runtimeEnvYAML",
        "selfLink",
        "stringData",
        "token",
        "volumesAttached",
        "volumesInUse",
    }
)
HASHED = frozenset({"claimName", "secretName"})
POD_SPEC = frozenset(
    {
        "activeDeadlineSeconds",
        "affinity",
        "automountServiceAccountToken",
        "hostIPC",
        "hostNetwork",
        "hostPID",
        "nodeName",
        "nodeSelector",
        "overhead",
        "preemptionPolicy",
        "priority",
        "priorityClassName",
        "resourceClaims",
        "resources",
        "restartPolicy",
        "runtimeClassName",
        "schedulerName",
        "schedulingGates",
        "securityContext",
        "serviceAccountName",
        "terminationGracePeriodSeconds",
        "tolerations",
        "topologySpreadConstraints",
    }
)
CONTAINER = frozenset({"name", "resources", "restartPolicy", "securityContext"})
POD_STATUS = frozenset(
    {"conditions", "nominatedNodeName", "phase", "qosClass", "reason", "startTime"}
)
CONTAINER_STATUS = frozenset({"name", "ready", "restartCount", "started"})
OWNER_TEXT = frozenset(
    {
        "apiVersion",
        "kind",
        "lastTransitionTime",
        "name",
        "namespace",
        "reason",
        "status",
        "type",
        "uid",
    }
)
OBJECT_REFERENCES = ("involvedObject", "regarding", "related")
SPEAKERS = (
    "cronjob-controller",
    "daemonset-controller",
    "default-scheduler",
    "deployment-controller",
    "hyperpod",
    "job-controller",
    "jobset",
    "kueue",
    "node-controller",
    "pytorchjob-controller",
    "replicaset-controller",
    "statefulset-controller",
    "taint-eviction-controller",
    "training-operator",
)
SILENCED = "(left out of the recording)"
