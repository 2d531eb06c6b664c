"""Metric files of a recording: what is read from them, and what is refused."""

import io
import math
from array import array
from pathlib import Path

import pytest

from local.metrics.openmetrics import Series, load, write
from steward.errors import ConfigError

OURS = {"ml-shared-01", "ml-shared-01-eks"}


def read(folder: Path, **files: str) -> list[Series]:
    """Write files (`a_om` is `a.om`) and load them."""
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    return load(sorted(folder.iterdir()), OURS)


def samples(series: Series) -> list[tuple[int, float]]:
    return list(zip(series.times, series.values, strict=True))


def test_open_metrics_has_seconds_and_prometheus_text_milliseconds(tmp_path: Path) -> None:
    (one,) = read(
        tmp_path,
        a_om='# TYPE m gauge\nm{pod="p"} 0.5 1793620800.25\nm{pod="p"} 1 1793620860\n# EOF\n',
        b_prom='# HELP m text\n\nm{pod="p"} 2e0 1793620920000\n',
    )
    assert one.labels == {"__name__": "m", "pod": "p"}
    assert samples(one) == [(1793620800250, 0.5), (1793620860000, 1), (1793620920000, 2)]


def test_a_sample_present_twice_counts_once_and_times_are_put_in_order(tmp_path: Path) -> None:
    (one,) = read(
        tmp_path,
        a_om='m{a="1",b="2"} 1 20\nm{a="1",b="2"} 1 10\n# EOF\n',
        b_om='m{ b="2", a="1", c="" } 9 10\nm{b="2",a="1"} 3 30\n# EOF\n',
    )
    # The order of labels and an empty label make no other series; the first value read stays.
    assert samples(one) == [(10_000, 1), (20_000, 1), (30_000, 3)]


def test_series_of_another_cluster_are_left_out(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        a_om='m{cluster_name="ml-shared-01"} 1 1\nm{cluster_name="ml-shared-01-eks"} 2 1\n'
        'm{cluster_name="other"} 3 1\nm{cluster_name="other"} 3 2\nm 4 1\n# EOF\n',
    )
    assert [list(one.values) for one in found] == [[4], [1], [2]]


def test_values_that_are_no_numbers_are_kept_for_the_reader_to_judge(tmp_path: Path) -> None:
    (one,) = read(tmp_path, a_om="m NaN 1\nm +Inf 2\nm -Inf 3\nm 1.8446744073709552e+19 4\n# EOF\n")
    assert math.isnan(one.values[0])
    assert list(one.values[1:]) == [math.inf, -math.inf, 2.0**64]


def test_label_values_are_unescaped(tmp_path: Path) -> None:
    (one,) = read(tmp_path, a_om='m{a="q\\"b\\\\n\\n, } x",b="NVIDIA H100 80GB",} 1 1\n# EOF\n')
    assert one.labels == {"__name__": "m", "a": 'q"b\\n\n, } x', "b": "NVIDIA H100 80GB"}


@pytest.mark.parametrize(
    "line",
    [
        "m",
        "m 1",
        'm{a="NVIDIA H100"} 1',  # no time: a sample that might be of any moment
        "m one 1",
        "m 1 yesterday",
        "m 1 NaN",
        "m 1 inf",
        "m{a=1} 1 1",
        'm{a="1} 1 1',
        'm{a="1" b="2"} 1 1',
        'm{a="1",a="2"} 1 1',
        "2m 1 1",
        'm{a="1"} 1 1 # {trace_id="x"} 1 1',
    ],
)
def test_a_malformed_line_is_named_with_file_and_line(tmp_path: Path, line: str) -> None:
    with pytest.raises(ConfigError, match=r"a\.om:3: "):
        read(tmp_path, a_om=f"# TYPE m gauge\nm 1 0\n{line}\n# EOF\n")


def test_milliseconds_are_whole(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"a\.prom:1: "):
        read(tmp_path, a_prom="m 1 1793620800.5\n")


def test_a_file_cut_off_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"a\.om: does not end with `# EOF`"):
        read(tmp_path, a_om="m 1 1\n")


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.om").write_bytes(b"m 1 1\n\xff\n# EOF\n")
    with pytest.raises(ConfigError, match=r"a\.om: not UTF-8"):
        load([tmp_path / "a.om"], OURS)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    text = (
        'm{a="q\\"b\\\\n\\n"} NaN 1793620800\nm{a="q\\"b\\\\n\\n"} +Inf 1793620800.001\n'
        'm{a="q\\"b\\\\n\\n"} 0.1 1793620800.999\nn -1 0.5\n# EOF\n'
    )
    before = read(tmp_path, a_om=text)
    again = tmp_path / "a.om"
    with again.open("w") as file:
        write(before, file)
    after = load([again], OURS)
    assert [s.labels for s in after] == [s.labels for s in before]
    assert [s.times for s in after] == [s.times for s in before]
    assert [repr(s.values) for s in after] == [repr(s.values) for s in before]


def test_a_written_time_keeps_its_millisecond_where_a_reader_cuts() -> None:
    # promtool multiplies by 1000 and cuts: 1793620800.001 alone would lose its millisecond for
    # some of these, as the nearest double may lie below.
    for millisecond in range(1000):
        file = io.StringIO()
        at = 1793620800_000 + millisecond
        write([Series({"__name__": "m"}, array("q", [at]), array("d", [1]))], file)
        stamp = file.getvalue().splitlines()[0].split()[-1]
        assert int(float(stamp) * 1000) == round(float(stamp) * 1000) == at
