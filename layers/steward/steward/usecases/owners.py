"""Who answers for a card, and who may exempt it: addresses of the policy, ids of Slack."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from steward.alerts.errors import DeliveryError
from steward.alerts.model import Card, CardKind
from steward.alerts.ranks import rank
from steward.cluster.policy import ClusterPolicy, People
from steward.telemetry import logger

if TYPE_CHECKING:
    from steward.ports import Directory


@dataclass(kw_only=True)
class Owners:
    """The people of one cluster, as one run needs them.

    Attributes
    ----------
    cluster : ClusterPolicy or None
        None: it left the policy, and nobody answers for it.
    """

    people: People
    cluster: ClusterPolicy | None
    directory: Directory
    _looked_up: dict[str, str | None] = field(default_factory=dict)

    def mentioned(self, card: Card) -> tuple[str, ...]:
        """Give the Slack ids of the owners to mention on a card that is about to be posted.

        Only where the policy asks for it. Whoever cannot be found is named by their address on the
        card all the same, and looked up again for no card: a card must not wait for it.
        """
        least = self.cluster.alerting.mention_owners if self.cluster else None
        wanted = least is not None and card.kind is CardKind.CARD
        if not wanted or least is None or rank(card.severity) < rank(least):
            return ()
        found = (self._user_of(email) for email in card.content["team_owners"])
        return tuple(user for user in found if user is not None)

    def may_exempt(self, user: str, team: str | None) -> bool:
        """Tell whether a Slack user may exempt what is a team's; who cannot be told may not."""
        allowed = {email.lower() for email in self.allowed(team)}
        if any(self.people.users.get(email) == user for email in allowed):
            return True
        if not self.people.lookup:
            return False
        try:
            email = self.directory.email_of(user)
        except DeliveryError as error:
            logger.error("a Slack user could not be looked up", user=user, error=str(error))
            return False
        return email is not None and email.lower() in allowed

    def allowed(self, team: str | None) -> tuple[str, ...]:
        """Name who may exempt what is a team's, by address."""
        owner = self.cluster.team_named(team) if self.cluster else None
        return (*(owner.owners if owner else ()), *self.people.exempters)

    def _user_of(self, email: str) -> str | None:
        known = self.people.users.get(email.lower())
        if known is not None or not self.people.lookup:
            return known
        if email not in self._looked_up:
            try:
                self._looked_up[email] = self.directory.user_of(email)
            except DeliveryError as error:
                logger.warning("an owner could not be looked up", error=str(error))
                self._looked_up[email] = None
        return self._looked_up[email]
