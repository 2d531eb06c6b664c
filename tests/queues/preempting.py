"""Jobs that are preempted again and again, seen whole, in part, or by their counters alone."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from tests.faults.kit import POLICY
from tests.handmade import Object, write
from tests.queues.kit import (
    FLAVOR,
    GPU,
    K12,
    K19,
    Dialect,
    Job,
    Quota,
    cluster_queue,
    condition,
)
from tests.queues.scene import (
    Recorded,
    at,
    cluster,
    control_plane,
    holds,
    refused,
    running_pod,
)
from tests.recordings import iso

BUCKET, PRIVATE = "ml-shared-01-checkpoints", "ml-shared-01-private"
RECLAIMED = "reclamation within the cohort"
OWNER = "uid-w-owner"
WAITS = (
    "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu in "
    f"flavor {FLAVOR}, 8 more needed"
)

OWNERS_POLICY = POLICY.replace("buffer_accelerators: 18\n", "buffer_accelerators: 14\n").replace(
    "        channel: gpu-research\n",
    f"""\
        channel: gpu-research
        checkpoints: ["s3://{BUCKET}/research/{{job}}/"]
      - name: platform-mlops
        accelerators: 4
        sharing: {{strategy: LendAndBorrow, borrow_limit_percent: 50}}
        owners: [platform-mlops-oncall@example.com]
        checkpoints: ["s3://{PRIVATE}/platform-mlops/{{job}}/"]
""",
)
"""Two teams, each with a bucket."""


def subject(name: str, team: str = "research") -> str:
    return f"Job/hyperpod-ns-{team}/{name}"


def _queues(dialect: Dialect) -> list[Object]:
    rows = {FLAVOR: {GPU: Quota(nominal="14", borrowing="14")}}
    return [
        cluster_queue(dialect, f"hyperpod-ns-{team}-clusterqueue", "shared-pool", rows)
        for team in ("research", "platform-mlops")
    ]


def runs_again(since: str, text: str, day: int = 0) -> list[Object]:
    """Conditions of a workload that was preempted and is admitted again."""
    when = at(since, day)
    before = f"Previously: {text}"
    return [
        *holds(when),
        condition("Evicted", "False", "QuotaReserved", when, before),
        condition("Preempted", "False", "QuotaReserved", when, before),
        condition("Requeued", "True", "Preempted", when, text),
    ]


def preempted(when: str, text: str, cause: str = "InCohortReclamation") -> list[Object]:
    """Conditions of a workload that was preempted and waits: one fact, in five conditions."""
    since = at(when)
    return [
        *refused(since, WAITS),
        condition("Evicted", "True", "Preempted", since, text),
        condition("Preempted", "True", cause, since, text),
        condition("Requeued", "True", "Preempted", since, text),
        condition("Admitted", "False", "NoReservation", since, "The workload has no reservation"),
    ]


def event(dialect: Dialect, job: Job, reason: str, when: str, message: str) -> Object:
    """An event about a Workload, in the API that its Kueue writes events in."""
    since = iso(at(when))
    name = f"job-{job.name}-a1b2c"
    made: Object = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{name}.{at(when).timestamp():.0f}{reason.lower()}",
            "namespace": job.namespace,
            "uid": f"uid-event-{job.name}-{reason}-{when}",
            "creationTimestamp": since,
        },
        "involvedObject": {
            "apiVersion": f"kueue.x-k8s.io/{dialect.api}",
            "kind": "Workload",
            "namespace": job.namespace,
            "name": name,
            "uid": job.uid or f"uid-w-{job.name}",
        },
        "reason": reason,
        "message": message[:1024],
        "type": "Normal",
    }
    if dialect.new:
        return made | {
            "firstTimestamp": None,
            "lastTimestamp": None,
            "eventTime": since.replace("Z", ".000000Z"),
            "source": {},
            "reportingComponent": "kueue-admission",
            "reportingInstance": "kueue-controller-manager-0",
            "action": "Preempt",
        }
    times = {"firstTimestamp": since, "lastTimestamp": since, "eventTime": None, "count": 1}
    return made | times | {"source": {"component": "kueue-admission"}}


def _both_events(dialect: Dialect, job: Job, when: str, message: str) -> list[Object]:
    return [
        event(dialect, job, reason, when, message)
        for reason in ("Preempted", "EvictedDueToPreempted")
    ]


def _job(name: str, conditions: Sequence[Object], **more: object) -> Job:
    """A job of 8 GPUs of research."""
    given: dict[str, object] = {
        "name": name,
        "team": "research",
        "created": at("06:00"),
        "gpus": 8,
        "conditions": conditions,
    }
    return Job(**(given | more))  # type: ignore[arg-type]


def _preemptor(since: str = "05:00", day: int = 0) -> Job:
    """Who the others make room for."""
    return Job(
        name="owner",
        team="platform-mlops",
        created=at(since, day),
        gpus=4,
        admitted=True,
        conditions=holds(at(since, day)),
    )


def _folder(
    folder: Path, when: str, dialect: Dialect, jobs: Sequence[Job], day: int = 0, **more: object
) -> None:
    """What Kubernetes shows from some time on; what is admitted runs."""
    time = at(when, day)
    running = [running_pod(job, time) for job in jobs if job.admitted]
    cluster(
        folder,
        time,
        dialect,
        queues=_queues(dialect),
        jobs=jobs,
        pods=running,
        **more,  # type: ignore[arg-type]
    )


# --- seen by the counter alone -------------------------------------------------------------------


def _thrice(dialect: Dialect, folder: Path) -> None:
    """Preempted and back between two ticks, three times in a week; runs of 25, 53 and 77 hours."""
    control_plane(folder)
    text = dialect.preempted(OWNER, RECLAIMED)
    started = {"created": at("08:00", -5), "admitted": True}
    owner = _preemptor(day=-5)
    _folder(folder, "08:00", dialect, [owner, _job("train", holds(at("08:00", -5)), **started)], -5)
    hours = 0
    for number, (back, day, ran) in enumerate(
        (("10:00", -4, 25), ("16:00", -2, 53), ("22:00", 1, 77))
    ):
        hours += ran
        job = _job(
            "train", runs_again(back, text, day), evictions=number + 1, past_seconds=hours * 3600,
            **started,
        )  # fmt: skip
        _folder(folder, back, dialect, [owner, job], day)


def _counters(dialect: Dialect, folder: Path) -> None:
    """Counters that were reset, that began before the period, and of a Workload made anew."""
    control_plane(folder)
    text = dialect.preempted(OWNER, RECLAIMED)
    owner = _preemptor()

    def job(name: str, day: int, evictions: int | None, back: str, **more: object) -> Job:
        return _job(
            name, runs_again(back, text), created=at("00:00", day), evictions=evictions,
            admitted=True, **more,
        )  # fmt: skip

    young, elder = job("young", -2, 3, "09:00"), job("elder", -16, 7, "09:00")
    same = [owner, young, elder]
    fast = job("fast", -35, 12, "09:00")
    first = [*same, fast, job("reset", -35, 12, "09:00")]
    _folder(
        folder, "09:50", dialect, [*first, job("anew", -1, 2, "09:00", uid="uid-anew-1")]
    )  # fmt: skip
    _folder(folder, "10:20", dialect, [*same, fast, job("reset", -35, None, "09:00")])
    anew = _job(
        "anew", runs_again("10:45", text), created=at("10:35"), evictions=1, admitted=True,
        uid="uid-anew-2",
    )  # fmt: skip
    late = [job(name, -35, 5, "10:45") for name in ("fast", "reset")]
    _folder(folder, "10:50", dialect, [*same, *late, anew])


# --- told many times, in many words --------------------------------------------------------------

SINCE_8 = f"Preempted to accommodate a workload (UID: {OWNER}) due to {RECLAIMED}"
SINCE_11 = f"Preempted to accommodate a workload (UID: {OWNER}, JobUID: job-1) due to {RECLAIMED}"
SINCE_15 = f"{SINCE_11}; preemptor path: /pool/mlops; preemptee path: /pool/research"
SINCE_17 = (
    f"{SINCE_15}; preemptor effective priority: 75 (base: 75, boost: 0); preemptee effective "
    "priority: 25 (base: 25, boost: 0)"
)


def _told_often(dialect: Dialect, folder: Path) -> None:
    """One folder for five ticks; condition, counter and two kinds of events tell the same."""
    control_plane(folder)
    text = dialect.preempted(OWNER, RECLAIMED)
    owner = _preemptor()
    often = _job("often", preempted("11:50", text), evictions=3)
    twice = _job("twice", preempted("11:50", text), evictions=2)
    wordy = _job("wordy", preempted("11:50", SINCE_15), evictions=3)
    events = [
        *(
            one
            for when in ("11:10", "11:30", "11:50")
            for one in _both_events(dialect, often, when, text)
        ),
        *(one for when in ("11:10", "11:50") for one in _both_events(dialect, twice, when, text)),
        event(dialect, wordy, "Preempted", "11:05", SINCE_8),
        event(dialect, wordy, "Preempted", "11:25", SINCE_11),
        event(dialect, wordy, "Preempted", "11:50", SINCE_17),
    ]
    _folder(folder, "11:52", dialect, [owner, often, twice, wordy], events=events)


# --- what was saved ------------------------------------------------------------------------------

ROUNDS = (("06:00", "07:30"), ("08:00", "09:30"), ("10:00", "11:30"))
"""Three runs of 90 minutes."""

SAVED = ("07:00", "09:00", "11:00")
"""An hour into each, so that half an hour is lost."""

MOUNT: Object = {
    "volumes": [{"name": "ckpt", "persistentVolumeClaim": {"claimName": "ckpt"}}],
    "containers": [
        {
            "name": "c",
            "resources": {"requests": {GPU: "8"}},
            "volumeMounts": [{"name": "ckpt", "mountPath": "/data/checkpoints"}],
        }
    ],
}


def _checkpoints(folder: Path) -> None:
    control_plane(folder)
    (folder / "governance.yaml").write_text(OWNERS_POLICY)
    text = K19.preempted(OWNER, RECLAIMED)
    owner = _preemptor()

    def all_of(conditions: Sequence[Object], evictions: int, *, admitted: bool) -> list[Job]:
        more: dict[str, object] = {
            "admitted": admitted,
            "evictions": evictions or None,
            "past_seconds": evictions * 5400 or None,
        }
        jobs = [_job(name, conditions, **more) for name in ("saved", "stale", "beating")]
        jobs.append(_job("declared", conditions, template={"spec": MOUNT}, **more))
        return [*jobs, _job("denied", conditions, team="platform-mlops", **more)]

    for number, (start, stop) in enumerate(ROUNDS):
        again = runs_again(start, text) if number else holds(at(start))
        _folder(folder, start, K19, [owner, *all_of(again, number, admitted=True)])
        gone = preempted(stop, text)
        _folder(folder, stop, K19, [owner, *all_of(gone, number + 1, admitted=False)])
    objects = [
        {"bucket": BUCKET, "key": f"research/saved/step-{n}/model.pt", "size": 9000}
        | {"last_modified": iso(at(when))}
        for n, when in enumerate(SAVED)
    ]
    objects.append(
        {"bucket": BUCKET, "key": "research/stale/step-9/model.pt", "size": 9000}
        | {"last_modified": iso(at("05:00"))}
    )
    write(folder / "checkpoints" / "listed.json", objects)
    refusal = {"Code": "AccessDenied", "Message": "Access Denied"}
    write(folder / "checkpoints" / "denied.json", {"bucket": PRIVATE, "Error": refusal})
    write(folder / "checkpoints" / "beats.json", [_beat(n, when) for n, when in enumerate(SAVED)])


def _beat(step: int, when: str) -> Object:
    return {
        "version": "0",
        "id": f"beat-{step}",
        "detail-type": "Checkpoint Written",
        "source": "gpu-steward.training",
        "account": "111122223333",
        "region": "us-east-1",
        "time": iso(at(when)),
        "resources": [],
        "detail": {
            "cluster": "ml-shared-01",
            "namespace": "hyperpod-ns-research",
            "job": "beating",
            "step": step,
            "uri": f"/scratch/beating/{step}",
        },
    }


# --- two that get nowhere ------------------------------------------------------------------------

TURNS = tuple(f"10:{minute:02}" for minute in range(2, 43, 5))
"""Nine evictions in forty minutes: of `ping`, of `pong`, of `ping`, …"""


def _turns(folder: Path) -> None:
    control_plane(folder)
    why = "Fair Sharing within the cohort"
    texts = (K19.preempted("uid-w-pong", why), K19.preempted("uid-w-ping", why))

    def both(done: int) -> list[Job]:
        """After so many evictions: the last victim waits, the other runs since then."""
        counts = ((done + 1) // 2, done // 2)
        # The first run was 30 minutes, from 09:32; each later one of either is 5 minutes.
        past = (1800 + 300 * (counts[0] - 1) if counts[0] else 0, 300 * counts[1])
        last = TURNS[done - 1] if done else "09:32"
        waits = (done - 1) % 2 if done else 1
        made = []
        for place, (name, team) in enumerate((("ping", "platform-mlops"), ("pong", "research"))):
            if place == waits and done:
                conditions = preempted(last, texts[place], "InCohortFairSharing")
            elif place == waits:
                conditions = refused(at(last), WAITS)
            elif counts[place]:
                conditions = runs_again(last, texts[place])
            else:
                conditions = holds(at(last))
            made.append(
                _job(
                    name, conditions, team=team, created=at("09:30"), admitted=place != waits,
                    evictions=counts[place] or None, past_seconds=past[place] or None,
                )
            )  # fmt: skip
        return made

    owner, text = _preemptor(), K19.preempted(OWNER, RECLAIMED)
    brief = (
        None,
        # 10:05 to 10:25.
        _brief(runs_again("10:27", text), 1, 1200, admitted=True),
        # And 10:27 to 10:40, and 10:42 to 10:57.
        _brief(preempted("10:57", text), 3, 1200 + 780 + 900, admitted=False),
    )
    for done, when, other in zip((0, 6, 9), ("09:50", "10:28", "10:58"), brief, strict=True):
        jobs = both(done)
        events = [
            event(K19, jobs[number % 2], "Preempted", turn, texts[number % 2])
            for number, turn in enumerate(TURNS[:done])
        ]
        everybody = [*jobs, owner, *([other] if other else [])]
        _folder(folder, when, K19, everybody, events=events)


def _brief(conditions: Sequence[Object], evictions: int, past: int, *, admitted: bool) -> Job:
    return _job(
        "brief", conditions, created=at("10:05"), evictions=evictions, past_seconds=past,
        admitted=admitted,
    )  # fmt: skip


# --- how it ends ---------------------------------------------------------------------------------


def _ends(folder: Path) -> None:
    """Three jobs are preempted three times within the hour, and never again."""
    control_plane(folder)
    text = K19.preempted(OWNER, RECLAIMED)
    owner = _preemptor()
    names = ("calm", "done", "gone")
    waiting = [_job(name, preempted("11:50", text), evictions=3) for name in names]
    events = [
        event(K19, job, "Preempted", when, text)
        for job in waiting
        for when in ("11:10", "11:30", "11:50")
    ]
    _folder(folder, "11:52", K19, [owner, *waiting], events=events)
    back = {
        name: _job(name, runs_again("12:30", text), evictions=3, admitted=True) for name in names
    }
    _folder(folder, "13:00", K19, [owner, *back.values()])
    ended = [*runs_again("12:30", text), condition("Finished", "True", "Succeeded", at("11:00", 1))]
    finished = _job("done", ended, evictions=3, admitted=True)
    _folder(folder, "11:30", K19, [owner, back["calm"], finished], 1)


RECORDINGS = (
    *(
        Recorded(
            f"preempted-unseen-{dialect.version}",
            at("00:00", -4),
            at("00:00", 2),
            "12h",
            "A job of 8 GPUs is preempted on 1, 3 and 6 November, and is back an hour later each "
            "time, long before the next look. Right: three in a week at the tick after the last, by "
            "Kueue's own counter, as one finding without_checkpoint; 8 x (25 + 53 + 77) GPU-hours.",
            partial(_thrice, dialect),
        )
        for dialect in (K12, K19)
    ),
    Recorded(
        "preempted-counters",
        at("10:00"),
        at("11:00"),
        "30m",
        "Counters: of reset 12, then none, then 5, of fast 12, then 5, older than the period; of "
        "elder 7 all along, older, too; of young 3 at the first look, made two days ago; of anew 2, then its Workload "
        "is made anew and has 1. Right: reset 5, fast 5, young 3, anew 3, and nothing of elder.",
        partial(_counters, K19),
    ),
    *(
        Recorded(
            f"preempted-told-often-{dialect.version}",
            at("12:00"),
            at("12:20"),
            "5m",
            "The same objects for five ticks. Condition, counter and two events each tell of three "
            "preemptions of often and of two of twice; those of wordy in the words of Kueue 0.8, "
            "0.11, 0.15 and 0.17. Right: 3, nothing of twice, and 3, from the first tick to the "
            "last.",
            partial(_told_often, dialect),
        )
        for dialect in (K12, K19)
    ),
    Recorded(
        "preempted-checkpoints",
        at("06:00"),
        at("11:30"),
        "30m",
        "Five jobs of 8 GPUs run for 90 minutes and are preempted, three times each. Right: stale "
        "(its file is older than the runs), declared (a mount, no file) and denied "
        "without_checkpoint, 36 GPU-hours each; saved (files) and beating (heartbeats only), an hour "
        "into each run, with_checkpoint, 12 GPU-hours each.",
        _checkpoints,
    ),
    Recorded(
        "preempted-in-turn",
        at("10:00"),
        at("11:00"),
        "30m",
        "ping and pong evict each other nine times in forty minutes; brief runs three times for 20 "
        "minutes at most. Right: one finding, thrash, of ping, which names both, 8 GPUs x (50 + 20) "
        "minutes; and brief without_checkpoint, in runs that were too short to reach one.",
        _turns,
    ),
    Recorded(
        "preempted-ends",
        at("12:00"),
        at("12:00", 7),
        "24h",
        "Three jobs are preempted at 11:10, 11:30 and 11:50, and never again; a day later one has "
        "ended and one was deleted. Right: finished and released a day later, and expired after "
        "seven days.",
        _ends,
    ),
)
