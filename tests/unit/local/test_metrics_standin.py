"""The in-process Prometheus: its refusals, its clock, and the form of its answers."""

import math
from array import array
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from werkzeug.test import Client

from local.metrics.openmetrics import Series
from local.standins.prometheus import PrometheusGate, PrometheusStandin

NOON = datetime(2026, 11, 2, 12, 0, tzinfo=UTC)
NOON_SECONDS = 1793620800  # `date -u -d 2026-11-02T12:00Z +%s`


def a_series(name: str = "m", **labels: str) -> Series:
    """Six samples, 0 to 5, a minute apart, the last at noon."""
    times = [(NOON_SECONDS - 60 * back) * 1000 for back in range(5, -1, -1)]
    return Series({"__name__": name, **labels}, array("q", times), array("d", range(6)))


def ask(query: str, *, time: Any = NOON_SECONDS, now: datetime = NOON) -> tuple[int, Any]:
    client = Client(PrometheusStandin([a_series(pod="p"), a_series("n", pod="q")], lambda: now))
    form = {"query": query} | ({} if time is None else {"time": time})
    answer = client.post("/api/v1/query", data=form)
    return answer.status_code, answer.get_json()


def result(query: str, **options: Any) -> Any:
    status, body = ask(query, **options)
    assert status == 200, body
    return body["data"]["result"]


def test_an_instant_selector_shows_the_newest_sample() -> None:
    assert result("m") == [{"metric": {"__name__": "m", "pod": "p"}, "value": [NOON_SECONDS, "5"]}]


def test_a_range_selector_shows_both_edges() -> None:
    (entry,) = result("m[2m]")
    assert entry["values"] == [
        [NOON_SECONDS - 120, "3"],
        [NOON_SECONDS - 60, "4"],
        [NOON_SECONDS, "5"],
    ]


def test_a_sample_is_shown_for_five_minutes() -> None:
    at = NOON + timedelta(minutes=5)
    later = at + timedelta(milliseconds=1)
    assert result("timestamp(m)", time=at.timestamp(), now=later)[0]["value"][1] == str(
        NOON_SECONDS
    )
    assert result("timestamp(m)", time=later.timestamp(), now=later) == []


def test_nothing_later_than_now_is_shown_whatever_time_is_asked_for() -> None:
    now = NOON - timedelta(seconds=61)
    assert [v for _, v in result("m[1h]", now=now)[0]["values"]] == ["0", "1", "2", "3"]
    assert result("count_over_time(m[1h])", now=now)[0]["value"][1] == "4"


def test_without_a_time_it_is_now() -> None:
    assert result("m", time=None, now=NOON - timedelta(minutes=3))[0]["value"][1] == "2"


@pytest.mark.parametrize(
    ("function", "values", "says"),
    [
        ("max_over_time", [math.nan, 1, 3, math.nan, 2], "3"),
        ("min_over_time", [math.nan, 2, 1, math.nan, 3], "1"),
        ("max_over_time", [math.nan, math.nan], "NaN"),
        ("min_over_time", [math.nan, math.nan], "NaN"),
        ("avg_over_time", [1, 2, 6], "3"),
        ("avg_over_time", [1, math.nan], "NaN"),
        ("avg_over_time", [math.inf, 1], "+Inf"),
        ("avg_over_time", [-math.inf, 1], "-Inf"),
        ("count_over_time", [math.nan, 1], "2"),
        ("last_over_time", [1, math.nan], "NaN"),
    ],
)
def test_a_function_treats_nan_as_prometheus_does(
    function: str, values: list[float], says: str
) -> None:
    # Prometheus' documentation of `<aggregation>_over_time`: all but max and min pass NaN on.
    times = array("q", (NOON_SECONDS * 1000 - n for n in range(len(values) - 1, -1, -1)))
    one = Series({"__name__": "m"}, times, array("d", values))
    client = Client(PrometheusStandin([one], lambda: NOON))
    answer = client.get("/api/v1/query", query_string={"query": f"{function}(m[5m])"})
    assert answer.get_json()["data"]["result"][0]["value"][1] == says


@pytest.mark.parametrize(
    ("matcher", "names"),
    [
        ('pod="p"', ["m"]),
        ('pod!="p"', ["n"]),
        ('pod=~"p|q"', ["m", "n"]),
        ('pod=~"pp?"', ["m"]),
        ('pod=~"x|"', []),
        ('pod!~"p.*"', ["n"]),
        ('absent=""', ["m", "n"]),
        ('absent!=""', []),
        ('absent=~"x|"', ["m", "n"]),
    ],
)
def test_matchers_are_anchored_and_an_absent_label_is_empty(matcher: str, names: list[str]) -> None:
    found = result(f'{{__name__=~"m|n",{matcher}}}')
    assert [entry["metric"]["__name__"] for entry in found] == names


def test_label_replace_gives_every_series_a_label() -> None:
    (entry,) = result('label_replace(max_over_time(m[2m]), "__steward__", "m 2", "", "")')
    assert entry == {"metric": {"__steward__": "m 2", "pod": "p"}, "value": [NOON_SECONDS, "5"]}


def test_or_adds_what_is_not_yet_there_and_a_name_is_no_difference() -> None:
    # Prometheus matches the two sides by their labels without the metric's name.
    both = Client(
        PrometheusStandin([a_series(), a_series("n"), a_series("n", x="y")], lambda: NOON)
    )
    answer = both.post("/api/v1/query", data={"query": "m or n", "time": NOON_SECONDS})
    assert [entry["metric"] for entry in answer.get_json()["data"]["result"]] == [
        {"__name__": "m"},
        {"__name__": "n", "x": "y"},
    ]


def test_or_drops_nothing_where_every_part_has_a_tag_of_its_own() -> None:
    parts = [
        f'label_replace({name}_over_time({{__name__=~"m|n",pod="p"}}[2m]), "t", "{name}", "", "")'
        for name in ("max", "min", "last")
    ]
    found = result(" or ".join(parts))
    assert [(entry["metric"]["t"], entry["value"][1]) for entry in found] == [
        ("max", "5"),
        ("min", "3"),
        ("last", "5"),
    ]


def test_labels_are_written_in_order_as_prometheus_writes_them() -> None:
    client = Client(PrometheusStandin([a_series(zone="z", UUID="u", a="b")], lambda: NOON))
    text = client.post("/api/v1/query", data={"query": "m"}).get_data(as_text=True)
    assert '"metric":{"UUID":"u","__name__":"m","a":"b","zone":"z"}' in text


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("m and m", "BinaryExpr"),
        ("m or on (pod) m", "BinaryExpr"),
        ("m or ignoring (pod) m", "BinaryExpr"),
        ("m or m[5m]", "type"),
        ('label_replace(m, "a", "$1", "", "")', "looks at a label"),
        ('label_replace(m, "a", "b", "pod", "")', "looks at a label"),
        ('label_replace(m, "a", "b", "", "(.*)")', "looks at a label"),
        ('label_replace(m, "a", "", "", "")', "looks at a label"),
        ('label_replace(m[5m], "a", "b", "", "")', "expected type"),
        ("m{", "unexpected end of input"),
        ("", "empty"),
        ("rate(m[5m])", "rate"),
        ("sum(m)", "AggregateExpr"),
        ("m + m", "BinaryExpr"),
        ("max_over_time(m[1h:1m])", "SubqueryExpr"),
        ("m offset 5m", "offset"),
        ("m @ 1793620800", "offset and @"),
        ('m{pod="p" or pod="q"}', "or between matchers"),
        ("max_over_time(m)", "expected type matrix"),
        ("timestamp(m[5m])", "expected type vector"),
        ('m{pod=~"(?-u)x"}', "regular expression"),
        ("1", "NumberLiteral"),
    ],
)
def test_what_it_does_not_evaluate_is_refused_as_prometheus_refuses(query: str, says: str) -> None:
    status, body = ask(query)
    assert (status, body["status"], body["errorType"]) == (400, "error", "bad_data")
    assert says in body["error"]


def test_two_answers_with_the_same_labels_are_an_execution_error() -> None:
    # Prometheus drops the metric's name, and refuses what then cannot be told apart.
    status, body = ask('max_over_time({__name__=~"m|n",absent=""}[5m])')
    assert status == 200, body
    same = Client(PrometheusStandin([a_series("m"), a_series("n")], lambda: NOON))
    answer = same.get(
        "/api/v1/query", query_string={"query": 'max_over_time({__name__=~"m|n"}[5m])'}
    )
    assert (answer.status_code, answer.get_json()["errorType"]) == (422, "execution")


@pytest.mark.parametrize("time", ["noon", "nan", "inf"])
def test_a_time_that_is_none_is_refused(time: str) -> None:
    status, body = ask("m", time=time)
    assert (status, body["errorType"]) == (400, "bad_data")


def test_another_path_is_not_found() -> None:
    client = Client(PrometheusStandin([], lambda: NOON))
    assert client.get("/api/v1/query_range", query_string={"query": "m"}).status_code == 404


def test_without_metrics_it_is_unavailable() -> None:
    client = Client(PrometheusStandin(None, lambda: NOON))
    answer = client.post("/api/v1/query", data={"query": "m"})
    assert (answer.status_code, answer.get_json()["errorType"]) == (503, "unavailable")


def test_the_gate_refuses_a_time_that_has_not_come() -> None:
    client = Client(PrometheusGate("http://127.0.0.1:9", lambda: NOON))
    answer = client.post("/api/v1/query", data={"query": "m", "time": NOON_SECONDS + 0.001})
    assert answer.status_code == 400
    assert "later than the virtual 1793620800.000" in answer.get_json()["error"]
