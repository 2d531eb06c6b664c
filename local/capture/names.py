"""Pseudonyms: the same name is the same pseudonym within a recording, and nothing leads back."""

import hashlib
import hmac
import re
from collections.abc import Collection
from dataclasses import dataclass, field

_EMAIL = re.compile(r"[A-Za-z0-9._%+'-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+")
# Only where twelve digits cannot be anything else: a disk's size in bytes has as many.
_ACCOUNT = re.compile(
    r"(?<=:)\d{12}(?=:)|(?<!\d)\d{12}(?=\.dkr\.ecr)"
    r"|(?<=\.amazonaws\.com/)\d{12}(?=/)|(?<=\.amazonaws\.com\.cn/)\d{12}(?=/)"
)
_ACTOR = re.compile(
    r"(arn:[\w-]*:(?:iam|sts)::\d{12}:(?:user|assumed-role|federated-user)/)([\w+=,.@/-]+)"
)
# As the API server names whom it refused.
_USER = re.compile(r'\b(User )"([^"]+)"', re.IGNORECASE)
_SYSTEM = ("eks:", "system:")
_PERSON_KEY = re.compile(
    r"(?:^|[^a-z])(?:created[-_]?by|modified[-_]?by|author|contact|e-?mail|maintainer|on-?call|"
    r"owner|requested[-_]?by|requester|submitted[-_]?by|submitter|user|user[-_]?(?:id|name))$",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?")


def names_person(key: str) -> bool:
    """Tell whether the value of a label, annotation or member of this name is a person."""
    return _PERSON_KEY.search(key) is not None


@dataclass(slots=True)
class Pseudonyms:
    """Replaces what a recording must not hold; a keyed hash, so that no list of names finds them.

    Attributes
    ----------
    salt : bytes
        The key; whoever has it can test a guess, so it never becomes part of a recording.
    accounts : set of str
        AWS accounts met so far, in whatever position they come again.
    rename_jobs : bool
        Whether jobs and pods get other names, too.
    jobs : set of str
        Names of jobs and pods met so far, for texts that mention them.
    """

    salt: bytes
    accounts: set[str] = field(default_factory=set)
    rename_jobs: bool = False
    jobs: set[str] = field(default_factory=set)

    def person(self, name: str) -> str:
        """Name a person."""
        return f"person-{self._digest(name)[:12]}"

    def user(self, name: str) -> str:
        """Name a user of Kubernetes; those of the system itself keep their names."""
        return name if name.startswith(_SYSTEM) else self.person(name)

    def hidden(self, value: str) -> str:
        """Name anything else whose own name stays behind."""
        return f"x-{self._digest(value)[:12]}"

    def account(self, number: str) -> str:
        """Give an account id in its place: twelve digits, the first four zero, as no real one has."""
        return f"0000{int(self._digest(number), 16) % 10**8:08d}"

    def channel(self, identifier: str) -> str:
        """Give a Slack channel id in its place, of the same form."""
        return f"C{self._digest(identifier)[:10].upper()}"

    def job(self, name: str) -> str:
        """Rename a job or pod; names with a common beginning keep one, as a controller's pods have."""
        if not self.rename_jobs or not name:
            return name
        head, dash, tail = name.rpartition("-")
        if not dash:
            return f"j{self._digest(name)[:8]}"
        return f"{self.job(head)}-{self._digest(tail)[:5]}"

    def pod(self, name: str) -> str:
        """Give the name that a pod has in the recording, whether or not it was met before."""
        return self.job(name) if self.rename_jobs else self.text(name)

    def meet_accounts(self, text: str) -> None:
        """Learn the accounts that a text names: in ARNs, of image registries, and of queues."""
        self.accounts.update(_ACCOUNT.findall(text))

    def text(self, value: str) -> str:
        """Replace addresses, people in ARNs and accounts; with `rename_jobs` also jobs met before."""
        self.meet_accounts(value)
        value = _ACTOR.sub(lambda found: found[1] + self._actor(found[2]), value)
        value = _USER.sub(lambda found: f'{found[1]}"{self._said(found[2])}"', value)
        value = _EMAIL.sub(lambda found: f"{self.person(found[0])}@example.com", value)
        for account in sorted(self.accounts):
            value = value.replace(account, self.account(account))
        return self._renamed(value, self.jobs) if self.rename_jobs and self.jobs else value

    def _actor(self, path: str) -> str:
        """Keep the role of an assumed role; the session, or the user, is a person."""
        role, slash, session = path.rpartition("/")
        return f"{role}{slash}{self.person(session)}"

    def _said(self, user: str) -> str:
        """Replace a user that a text names; in an ARN the person is replaced already."""
        return user if user.startswith("arn:") else self.user(user)

    def _renamed(self, value: str, known: Collection[str]) -> str:
        return _WORD.sub(lambda w: self.job(w[0]) if w[0] in known else w[0], value)

    def _digest(self, value: str) -> str:
        return hmac.new(self.salt, value.encode(), hashlib.sha256).hexdigest()
