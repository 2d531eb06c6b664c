"""The quota tree against a second one, written from Kueue's definitions without any cleverness."""

from hypothesis import given, settings
from hypothesis import strategies as st

from steward.cluster.kueue import ClusterQueue, Cohort, QuotaRow
from steward.cluster.quota import QuotaTree

LIMIT = st.none() | st.integers(0, 12)
COHORTS = ("a", "b", "c", "d")


def a_row(nominal, borrowing, lending):
    return QuotaRow(
        flavor="f",
        resource="r",
        nominal=nominal,
        borrowing_limit=borrowing,
        lending_limit=lending,
        reserved=None,
        used=None,
        borrowed=None,
    )


@st.composite
def trees(draw):
    """Cohorts hang on earlier ones, so that there is no cycle; `implicit` is never declared."""
    quota = st.tuples(st.integers(0, 12), LIMIT, LIMIT)
    parents = {
        name: draw(st.sampled_from((None, "implicit", *COHORTS[:n])))
        for n, name in enumerate(COHORTS)
    }
    cohorts = {
        name: (parent, draw(quota) if parent else (draw(st.integers(0, 12)), None, None))
        for name, parent in parents.items()
    }
    queues = {}
    for n in range(draw(st.integers(1, 5))):
        parent = draw(st.sampled_from((None, "implicit", *COHORTS)))
        given_quota = draw(quota) if parent else (draw(st.integers(0, 12)), None, None)
        queues[f"q{n}"] = (parent, given_quota, draw(st.integers(0, 15)))
    return cohorts, queues


class Naive:
    """The definitions, one a method, computed again each time."""

    def __init__(self, cohorts, queues):
        self.parent = {n: c[0] for n, c in cohorts.items()} | {n: q[0] for n, q in queues.items()}
        self.parent["implicit"] = None
        self.quota = {n: c[1] for n, c in cohorts.items()} | {n: q[1] for n, q in queues.items()}
        self.quota["implicit"] = (0, None, None)
        self.used = {n: q[2] for n, q in queues.items()}

    def children(self, n):
        return [one for one, parent in self.parent.items() if parent == n]

    def subtree(self, n):
        return self.quota[n][0] + sum(self.subtree(c) - self.local(c) for c in self.children(n))

    def local(self, n):
        lending = self.quota[n][2]
        return 0 if lending is None else max(0, self.subtree(n) - lending)

    def usage(self, n):
        if n in self.used:
            return self.used[n]
        return sum(max(0, self.usage(c) - self.local(c)) for c in self.children(n))

    def available(self, n, *, limits):
        parent, (_, borrowing, _) = self.parent[n], self.quota[n]
        if parent is None:
            return self.subtree(n) - self.usage(n)
        above = self.available(parent, limits=limits)
        if borrowing is not None and limits:
            stored = self.subtree(n) - self.local(n)
            taken = max(0, self.usage(n) - self.local(n))
            above = min(above, stored - taken + borrowing)
        return max(0, self.local(n) - self.usage(n)) + above

    def potential(self, n, *, limits):
        parent, (_, borrowing, _) = self.parent[n], self.quota[n]
        if parent is None:
            return self.subtree(n)
        most = self.local(n) + self.potential(parent, limits=limits)
        if borrowing is not None and limits:
            most = min(most, self.subtree(n) + borrowing)
        return most

    def root(self, n):
        return n if self.parent[n] is None else self.root(self.parent[n])


def real(cohorts, queues):
    return QuotaTree(
        [
            ClusterQueue(name=name, cohort=parent, rows=(a_row(*quota),), conditions=())
            for name, (parent, quota, _) in queues.items()
        ],
        [
            Cohort(name=name, parent=parent, rows=(a_row(*quota),))
            for name, (parent, quota) in cohorts.items()
        ],
        "f",
        "r",
        {name: used for name, (_, _, used) in queues.items()},
    )


@settings(max_examples=300, deadline=None)
@given(trees())
def test_both_trees_agree_on_everything(tree):
    naive, ours = Naive(*tree), real(*tree)
    for name, (_, (nominal, _, _), used) in tree[1].items():
        for limits in (True, False):
            left = max(0, naive.available(name, limits=limits))
            assert ours.available(name, limits=limits) == left
            assert ours.potential(name, limits=limits) == naive.potential(name, limits=limits)
        assert ours.borrowed(name) == max(0, used - nominal)
        others = {n for n in tree[1] if n != name and naive.root(n) == naive.root(name)}
        assert set(ours.siblings(name)) == others


@settings(max_examples=300, deadline=None)
@given(trees(), st.integers(1, 30))
def test_a_request_fits_once_every_limit_on_its_way_is_what_it_needs(tree, need):
    ours = real(*tree)
    for name in tree[1]:
        limits = ours.path_limits(name, need)
        fits = need <= ours.available(name, limits=False)
        within = all(one.needed <= one.limit for one in limits)
        # Where the pool has enough, the limits alone decide.
        if fits:
            assert (need <= ours.available(name)) == within
            raised = raise_limits(tree, limits)
            assert need <= real(*raised).available(name)
        for one in limits:
            # And each of them is the least that will do.
            if fits and one.needed > one.limit:
                short = raise_limits(tree, limits, but={(one.kind, one.name): one.needed - 1})
                assert need > real(*short).available(name)


def raise_limits(tree, limits, but=None):
    cohorts, queues = tree
    new = {(x.kind, x.name): max(x.limit, x.needed) for x in limits} | (but or {})

    def changed(kind, name, quota):
        return (quota[0], new.get((kind, name), quota[1]), quota[2])

    return (
        {n: (parent, changed("Cohort", n, q)) for n, (parent, q) in cohorts.items()},
        {
            n: (parent, changed("ClusterQueue", n, q), used)
            for n, (parent, q, used) in queues.items()
        },
    )


@settings(max_examples=300, deadline=None)
@given(trees())
def test_lenders_give_together_what_could_be_borrowed_and_none_more_than_it_has(tree):
    naive, ours = Naive(*tree), real(*tree)
    for name, (_, (nominal, _, _), used) in tree[1].items():
        given_ = ours.lenders(name)
        own = max(0, nominal - used)
        left = max(0, naive.available(name, limits=False))
        assert sum(given_.values()) == max(0, left - own)
        assert name not in {lender for _, lender in given_}
        for (kind, lender), amount in given_.items():
            assert amount > 0
            assert amount == int(amount)
            if kind == "Cohort":
                assert amount <= naive.quota[lender][0]
            else:
                kept, lent = naive.local(lender), max(0, naive.usage(lender) - naive.local(lender))
                assert amount <= naive.subtree(lender) - kept - lent
        for cohort in naive.quota:
            # A cohort that is not above the queue lets out no more than its lending limit.
            lending = naive.quota[cohort][2]
            if lending is None or cohort in tree[1] or above(naive, cohort, name):
                continue
            inside = sum(n for (_, one), n in given_.items() if above(naive, cohort, one))
            assert inside <= lending


def above(naive, cohort, node):
    """Whether a cohort is the node itself, or above it."""
    return node is not None and (node == cohort or above(naive, cohort, naive.parent[node]))


@settings(max_examples=100, deadline=None)
@given(trees(), st.randoms())
def test_the_order_of_the_objects_changes_nothing(tree, random):
    def shuffled(given_):
        items = list(given_.items())
        random.shuffle(items)
        return dict(items)

    one, other = real(*tree), real(*map(shuffled, tree))
    for name in tree[1]:
        assert list(one.lenders(name).items()) == list(other.lenders(name).items())
        assert one.siblings(name) == other.siblings(name)
        assert one.path_limits(name, 5) == other.path_limits(name, 5)
