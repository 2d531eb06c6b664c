"""Mistakes that no single key of the example policy can tell."""

from tests.unit.policy.documents import DONT_LEND, IDLE, QUOTA, TEAM, Mistake

RULE_MISTAKES = {
    "a team name whose namespace would be too long": Mistake(
        # 12 characters of hyperpod-ns- and 52 of the name are one more than a namespace may have
        "      - name: research\n",
        f"      - name: {'a' * 52}\n",
        f"{TEAM}.name",
        "has 64 characters, 63 are allowed",
        "shorten the name to 51, or list its namespaces",
    ),
    "a borrow limit on a team that does not borrow": Mistake(
        DONT_LEND,
        "          strategy: DontLend\n          borrow_limit_percent: 50",
        "clusters[0].teams[2].sharing.borrow_limit_percent",
        "50 has no effect: DontLend never borrows",
        "remove it, or set strategy to LendAndBorrow",
    ),
    "a borrow limit on a team that only lends": Mistake(
        DONT_LEND,
        "          strategy: Lend\n          borrow_limit_percent: 0",
        "clusters[0].teams[2].sharing.borrow_limit_percent",
        "0 has no effect: Lend never borrows",
        "remove it",
    ),
    "an unlimited borrower": Mistake(
        DONT_LEND,
        "          strategy: LendAndBorrow",
        "clusters[0].teams[2].sharing.borrow_limit_percent",
        "is missing, and LendAndBorrow borrows",
        "add it, 50 to 100",
        up=1,
    ),
    "a team twice": Mistake(
        "      - name: research\n",
        "      - namespaces: [lab]\n        name: platform-mlops\n",
        f"{TEAM}.name",
        "team platform-mlops is already at clusters[0].teams[0].name",
        "keep one of the two",
    ),
    "a namespace of two teams": Mistake(
        QUOTA,
        f"{QUOTA}        namespaces: [lab, hyperpod-ns-product-genai]\n",
        "clusters[0].teams[2].name",
        "namespace hyperpod-ns-product-genai is already at clusters[0].teams[1].namespaces[1]",
        "keep one of the two",
        at="      - name: product-genai",
    ),
    "a priority class twice": Mistake(
        "      - name: experimentation\n",
        "      - name: production-training\n",
        "clusters[0].priority_classes[2].name",
        "priority class production-training is already at clusters[0].priority_classes[1].name",
        "keep one of the two",
    ),
    "a channel id twice": Mistake(
        "gpu-research: C0GPURESEA01",
        "gpu-research: C0GPUMLOPS01",
        "slack.channels.gpu-research",
        "channel id C0GPUMLOPS01 is already at slack.channels.gpu-mlops",
        "keep one of the two",
    ),
    "a channel that is not listed": Mistake(
        "        channel: gpu-research",
        "        channel: gpu-reserch",
        f"{TEAM}.channel",
        "there is no channel gpu-reserch",
        "did you mean gpu-research?",
    ),
    "a platform channel that is not listed": Mistake(
        "  platform_channel: gpu-platform",
        "  platform_channel: platform",
        "slack.platform_channel",
        "there is no channel platform",
        "did you mean gpu-platform?",
    ),
    "quotas above the capacity": Mistake(
        # 4 + 15 + 10 = 29 for the teams and 4 for the buffer are 33, one more than there are
        "        accelerators: 14\n",
        "        accelerators: 15\n",
        "clusters[0].teams",
        "quotas of 29 and a buffer of 4 are 33 accelerators, above the capacity of 32",
        "take 1 from a team or the buffer, or add capacity",
        at="    teams:",
    ),
    "a placeholder that is not known": Mistake(
        "checkpoints: [s3://ml-shared-01-checkpoints/research/]",
        'checkpoints: ["s3://ml-shared-01-checkpoints/{team}/{jobs}/"]',
        f"{TEAM}.checkpoints[0]",
        "there is no placeholder {jobs}",
        "did you mean {job}? known are {team}, {namespace}, {job}",
    ),
    "a placeholder that is not closed": Mistake(
        "checkpoints: [s3://ml-shared-01-checkpoints/research/]",
        'checkpoints: [{location: "fsx://shared/{job/"}]',
        f"{TEAM}.checkpoints[0].location",
        "there is no placeholder {",
        "known are {team}, {namespace}, {job}",
    ),
    "a marker where nothing can be listed": Mistake(
        "checkpoints: [s3://ml-shared-01-checkpoints/research/]",
        "checkpoints: [{location: fsx://shared/research/, marker: _SUCCESS}]",
        f"{TEAM}.checkpoints[0].marker",
        '"_SUCCESS" has no effect: a file system cannot be listed',
        "remove it: there, only what jobs themselves report",
    ),
    "a grace longer than its window": Mistake(
        "        startup_grace: 15m",
        "        startup_grace: 90m",
        f"{IDLE}.startup_grace",
        "the startup_grace of 90m is longer than the window of 60m",
        "it runs inside the window",
    ),
    "a spoke in another account than its cluster": Mistake(
        '    # account: "012345678901"\n',
        '    account: "012345678901"\n'
        "    spoke_queue_url: https://sqs.us-east-1.amazonaws.com/444455556666/spoke\n",
        "clusters[0].spoke_queue_url",
        "is a queue of account 444455556666, whose spoke cannot read a cluster of 012345678901",
        "name the cluster's account, or role_arn as well",
    ),
    "a price of something else": Mistake(
        "    prices:\n      - instance_type: ml.p5.48xlarge",
        "    prices:\n      - instance_type: ml.p5.48xlrge",
        "clusters[0].prices[0].instance_type",
        "there is no capacity of type ml.p5.48xlrge",
        "did you mean ml.p5.48xlarge?",
    ),
}
