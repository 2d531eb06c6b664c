"""The life of alerts: a fold of evaluations, in the evaluations' own time.

Decides what is damped, open and resolved. Counts minutes between evaluations, never evaluations;
takes nothing that could not be judged for an end or a beginning.
"""

from copy import replace
from datetime import datetime, timedelta

from steward.alerts import troubles
from steward.alerts.model import KEPT, REMEMBERED, Alert, AlertState, ReconcilerState, group_of
from steward.cluster.findings import (
    UNSEEN,
    DetectorStatus,
    Evaluation,
    Finding,
    Resolution,
    Unknown,
)
from steward.cluster.policy import ClusterPolicy

STALE = timedelta(minutes=15)
"""An alert that could not be judged for this long says so."""

REOPEN = timedelta(hours=1)
"""What opens this soon after the end of its group's incident continues it, on the same card. While
it keeps being seen, if never for long enough to open, it is not over either."""


def advance(
    state: ReconcilerState, evaluation: Evaluation, cluster: ClusterPolicy
) -> ReconcilerState:
    """Fold one evaluation into the alerts.

    Parameters
    ----------
    state : ReconcilerState
        Of the evaluation's cluster.
    evaluation : Evaluation
        One that is not newer than the state changes nothing: repeated and late ones are harmless.
    cluster : ClusterPolicy
        Exemptions in force.

    Returns
    -------
    ReconcilerState
        With the evaluation's time; cards are as they were. Cost O(alerts + findings + unknown).
    """
    if state.at is not None and evaluation.at <= state.at:
        return state
    evaluation = troubles.added(evaluation)
    step = _Step(state, evaluation, cluster)
    keys = sorted(state.alerts.keys() | step.present.keys())
    advanced = {key: step.alert(key) for key in keys}
    kept = {
        key: alert
        for key, alert in advanced.items()
        if alert and not _forgotten(alert, evaluation.at)
    }
    waivers = {k: w for k, w in state.waivers.items() if evaluation.at - w.until <= KEPT}
    return replace(state, at=evaluation.at, alerts=kept, waivers=waivers)


def _forgotten(alert: Alert, at: datetime) -> bool:
    over = alert.resolved if alert.state is AlertState.RESOLVED else None
    return over is not None and at - over > KEPT


def depart_alerts(state: ReconcilerState, at: datetime) -> ReconcilerState:
    """End everything that is known of a cluster that is not watched any more: expired."""
    kept = {
        key: ended(alert, at, Resolution.EXPIRED)
        for key, alert in state.alerts.items()
        if alert.state is not AlertState.DAMPED or alert.resolved is not None
    }
    return replace(state, alerts=kept)


def ended(alert: Alert, at: datetime, resolution: Resolution) -> Alert:
    """End an alert; one that has ended before keeps its end."""
    known = alert.resolved is not None
    return replace(
        alert,
        state=AlertState.RESOLVED,
        resolved=alert.resolved if known else at,
        resolution=alert.resolution if known else resolution,
        clearing=None,
        unknown_since=None,
        stale=False,
    )


class _Step:
    """One evaluation, indexed by what each alert has to ask."""

    def __init__(
        self, state: ReconcilerState, evaluation: Evaluation, cluster: ClusterPolicy
    ) -> None:
        self.at = evaluation.at
        self._alerts = state.alerts
        self._waivers = tuple(w for w in state.waivers.values() if evaluation.at < w.until)
        self._evaluation = evaluation
        self._cluster = cluster
        # What a detector that was not evaluated says opens nothing.
        self.present = {
            finding.key: finding
            for finding in evaluation.findings
            if self._status(finding.detector) is DetectorStatus.EVALUATED
        }
        self._sole = {
            (f.detector, f.subject): f.reason for f in self.present.values() if f.one_reason
        }
        # The newest wins: the end of an earlier incident is still repeated when the next one ends.
        self._cleared = {
            cleared.finding.key: cleared
            for cleared in sorted(evaluation.cleared, key=lambda c: c.finding.since)
        }
        self._blind = {line.detector for line in evaluation.unknown if line.blind}
        self._unknown: dict[tuple[str, str], list[Unknown]] = {}
        for line in evaluation.unknown:
            self._unknown.setdefault((line.detector, line.subject), []).append(line)
        self._groups: dict[str, list[Alert]] = {}
        self._subjects: dict[tuple[str, str], list[Alert]] = {}
        for alert in state.alerts.values():
            self._groups.setdefault(alert.group, []).append(alert)
            about = (alert.finding.detector, alert.finding.subject)
            self._subjects.setdefault(about, []).append(alert)

    def alert(self, key: str) -> Alert | None:
        """Advance one alert; None: there is none (any more)."""
        before = self._alerts.get(key)
        finding = self.present.get(key)
        known = finding or (before.finding if before else None)
        if known and self._exempt(known):
            return self._exempted(before, known)
        if finding:
            return self._seen(before, finding)
        if before is None or before.state is AlertState.RESOLVED:
            return before
        return self._unseen(before)

    def _unseen(self, before: Alert) -> Alert | None:
        if before.state is AlertState.OPEN and self._taken_over(before.finding):
            return self._resolve(before, Resolution.REASON_CHANGED, self._last_words(before))
        if self._status(before.finding.detector) is DetectorStatus.OUT_OF_SCOPE:
            # Nobody looked: neither absent nor unknown. Else nothing that only an audit looks at
            # could ever end, and all of it would be stale between two audits.
            return before
        # An end that the detector told is known, whatever can be judged of its subject since.
        if before.key not in self._cleared and self._held(before.finding):
            return self._hold(before)
        if before.state is AlertState.DAMPED:
            # What was seen again after its end, and then not, has ended when it did.
            return replace(before, state=AlertState.RESOLVED) if before.resolved else None
        return self._absent(before)

    def _last_words(self, before: Alert) -> Finding:
        """Give the final numbers, where the detector told them of this very incident."""
        cleared = self._cleared.get(before.key)
        same = cleared is not None and cleared.finding.since == before.finding.since
        return cleared.finding if cleared and same else before.finding

    def _status(self, detector: str) -> DetectorStatus | None:
        return self._evaluation.detectors.get(detector)

    def _exempt(self, finding: Finding) -> bool:
        exemption = self._cluster.exemption_for(
            finding.detector, finding.subject, self.at, finding.team
        )
        return exemption is not None or any(w.covers(finding, self.at) for w in self._waivers)

    def _exempted(self, before: Alert | None, finding: Finding) -> Alert | None:
        if before is None or before.resolved is not None:
            return replace(before, state=AlertState.RESOLVED) if before else None
        if before.state is AlertState.DAMPED:
            return None
        return self._resolve(before, Resolution.EXEMPTED, finding)

    def _seen(self, before: Alert | None, finding: Finding) -> Alert:
        if before is None:
            before = Alert(
                finding=finding,
                state=AlertState.DAMPED,
                first_seen=self.at,
                last_seen=self.at,
                held_until=self.at,
            )
        elif before.state is AlertState.RESOLVED:
            incident = before.incident if self._recent(before) else None
            before = replace(before, state=AlertState.DAMPED, first_seen=self.at, incident=incident)
        lasted = self.at - before.first_seen >= timedelta(minutes=finding.damping_minutes)
        opens = before.state is AlertState.DAMPED and (lasted or self._takes_over(finding))
        before = replace(
            before,
            last_seen=self.at,
            held_until=self.at,
            clearing=None,
            unknown_since=None,
            stale=False,
        )
        if opens:
            return replace(
                before,
                finding=_remembered(finding),
                state=AlertState.OPEN,
                opened=self.at,
                incident=self._incident(finding),
                resolved=None,
                resolution=None,
            )
        # The final numbers of what has ended stay until it is open again.
        ended = before.resolved is not None
        return before if ended else replace(before, finding=_remembered(finding))

    def _takes_over(self, finding: Finding) -> bool:
        """Tell whether it continues what is open under another reason: damping was served there.

        One that ended by this very evaluation counts: half of this step may have been stored.
        """
        return finding.one_reason and any(
            a.key != finding.key
            and (
                a.state is AlertState.OPEN
                or (a.resolved == self.at and a.resolution is Resolution.REASON_CHANGED)
            )
            for a in self._subjects.get((finding.detector, finding.subject), ())
        )

    def _incident(self, finding: Finding) -> datetime:
        """Find the incident that an opening alert belongs to: a running one, else its own."""
        running = [
            a.incident
            for a in self._groups.get(group_of(finding), ())
            if a.incident is not None and self._recent(a)
        ]
        return max(running, default=self.at)

    def _recent(self, alert: Alert) -> bool:
        """Tell whether an alert is open, or ended or was seen not long ago."""
        over = alert.resolved
        return over is None or self.at - max(over, alert.last_seen) <= REOPEN

    def _taken_over(self, finding: Finding) -> bool:
        return self._sole.get((finding.detector, finding.subject), finding.reason) != finding.reason

    def _held(self, finding: Finding) -> bool:
        """Tell whether what would show the finding could not be judged."""
        if self._status(finding.detector) is not DetectorStatus.EVALUATED:
            return True
        if finding.detector in self._blind:
            return True
        parts = set(finding.parts)
        lines = self._unknown.get((finding.detector, finding.subject), ())
        # What names no parts is the whole subject, on either side.
        return any(
            not line.parts or not parts or not parts.isdisjoint(line.parts) for line in lines
        )

    def _hold(self, before: Alert) -> Alert:
        since = before.unknown_since or self.at
        return replace(
            before, held_until=self.at, unknown_since=since, stale=self.at - since >= STALE
        )

    def _absent(self, before: Alert) -> Alert:
        cleared = self._cleared.get(before.key)
        resolution = cleared.resolution if cleared else before.clearing or _ending(before.finding)
        if self.at - before.held_until >= UNSEEN:
            final = cleared.finding if cleared else before.finding
            return self._resolve(before, resolution, final)
        return replace(before, clearing=resolution, unknown_since=None, stale=False)

    def _resolve(self, before: Alert, resolution: Resolution, finding: Finding) -> Alert:
        return ended(replace(before, finding=_remembered(finding)), self.at, resolution)


def _remembered(finding: Finding) -> Finding:
    """Bound what is stored of a finding; with too many parts it rests on its whole subject."""
    omitted = {
        name: len(value) - REMEMBERED
        for name, value in finding.evidence.items()
        if isinstance(value, list) and len(value) > REMEMBERED
    }
    if not omitted and len(finding.parts) <= REMEMBERED:
        return finding
    kept = {name: finding.evidence[name][:REMEMBERED] for name in omitted}
    evidence = {**finding.evidence, **kept, "omitted": omitted}
    parts = finding.parts if len(finding.parts) <= REMEMBERED else ()
    return replace(finding, evidence=evidence, parts=parts)


_ABOUT_HOLDERS = frozenset({"idle_gpus", "preemptions", "pending"})


def _ending(finding: Finding) -> Resolution:
    """Choose the resolution where the detector told none.

    A detector about workloads says how a subject that it still sees ended; what it says nothing
    of any more has left the readable inventory: released. The others speak of the set-up, which
    stays where it is until somebody mends it: fixed.
    """
    return Resolution.RELEASED if finding.detector in _ABOUT_HOLDERS else Resolution.FIXED
