"""What a reader should see of some problems, worked out from the observations by the rules' own words.

Knows nothing of the product: times, looks, and the sentences of docs/slack.md.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

ABSENT, UNKNOWN = "absent", "unknown"
TEN, HOUR, FOUR_HOURS, DAY = (timedelta(minutes=m) for m in (10, 60, 240, 1440))
LOUDNESS = {"info": 0, "warn": 1, "page": 2}


@dataclass(frozen=True)
class Sight:
    """What was seen of one subject: `absent`, `unknown`, or `<reason> <severity>`.

    With `exempt_until` it is somebody's exemption instead, which holds until then.
    """

    at: datetime
    look: str
    exempt_until: datetime | None = None


@dataclass
class Track:
    """One subject, followed through its sights."""

    on: bool = False
    look: str = ABSENT
    held: datetime | None = None
    seen: datetime | None = None
    ended: datetime | None = None
    dark_since: datetime | None = None
    exempt_until: datetime | None = None

    def see(self, sight: Sight) -> None:
        if sight.exempt_until is not None:
            self.on, self.ended = False, sight.at if self.on else self.ended
            self.exempt_until, self.dark_since = sight.exempt_until, None
        elif sight.look == UNKNOWN:
            self.held = sight.at
            self.dark_since = self.dark_since or sight.at
        elif self.exempt_until is not None and sight.at < self.exempt_until:
            return
        elif sight.look == ABSENT:
            self.dark_since = None
            if self.on and self.held is not None and sight.at - self.held >= TEN:
                self.on, self.ended = False, sight.at
        else:
            self.on, self.look = True, sight.look
            self.held = self.seen = sight.at
            self.dark_since = None

    @property
    def loudness(self) -> int:
        return LOUDNESS[self.look.split()[1]]


@dataclass
class Story:
    """One card: an incident of one problem, from where it first got loud."""

    begun: datetime
    openings: list[datetime] = field(default_factory=list)
    on: bool = False
    ended: datetime | None = None
    looks: tuple[str, ...] = ()
    standing: str = "open"
    alive: bool = False

    @property
    def told(self) -> bool:
        return bool(self.openings)


def stories(subjects: Sequence[Iterable[Sight]]) -> list[tuple[Story, str]]:
    """Work out every card of a problem, and how it stands at the end.

    Parameters
    ----------
    subjects : sequence of iterable of Sight
        The sights of each subject of the problem, oldest first; at each time all have one.

    Returns
    -------
    list of (Story, str)
        `open`, `resolved`, `flapping` or `handed_over`.
    """
    tracks = [Track() for _ in subjects]
    found: list[Story] = []
    last = datetime.min.replace(tzinfo=UTC)
    for moment in zip(*subjects, strict=True):
        last = moment[0].at
        for track, sight in zip(tracks, moment, strict=True):
            track.see(sight)
        _follow(found, tracks, last)
        for story in found:
            story.standing = _standing(story, tracks, last, newest=story is found[-1])
    return [(story, story.standing) for story in found]


def _follow(found: list[Story], tracks: list[Track], at: datetime) -> None:
    running = [track for track in tracks if track.on]
    story = found[-1] if found else None
    if running and (story is None or (not story.alive and not _recent(story, tracks, at))):
        story = Story(begun=at)
        found.append(story)
    if story is None:
        return
    story.alive = bool(running)
    loud = any(track.loudness for track in running)
    if story.told and story.standing == "resolved" and not loud:
        return  # what came after is digest material, and so is what is left
    if (running and not story.on and (story.told or loud)) or (running and not story.told and loud):
        story.openings.append(at)
    story.on = bool(running)
    story.ended = None if running else story.ended or at
    if running:
        story.looks = tuple(track.look for track in running)


def _recent(story: Story, tracks: list[Track], at: datetime) -> bool:
    signs = [story.ended, *(track.ended for track in tracks)]
    signs += [track.seen for track in tracks if track.seen != at]
    return at - max(sign for sign in signs if sign is not None) <= HOUR


def _standing(story: Story, tracks: list[Track], at: datetime, *, newest: bool) -> str:
    if not newest:
        return "resolved"
    recent = [opening for opening in story.openings if at - opening <= FOUR_HOURS]
    changed = story.openings[-1] if story.on and story.told else story.ended
    if len(recent) >= 3 and changed is not None and at - changed < HOUR:
        exempted = any(t.exempt_until is not None and t.ended == story.ended for t in tracks)
        return "resolved" if exempted and not story.on else "flapping"
    if not story.on:
        return "resolved"
    dark = [t.dark_since for t in tracks if t.on]
    over = all(since is not None and at - since >= DAY for since in dark)
    return "handed_over" if over else "open"
