"""EKS add-ons: which are described, and what of their configuration survives."""

import json
from typing import Any

import msgspec
import pytest

from steward.cluster.control_plane import AddOn
from steward.ports import ControlPlaneReading
from tests.contract.cluster_reader.answers import (
    GOVERNANCE,
    OBSERVABILITY,
    PARTS,
    SECRET,
    WELL,
    add_on,
    error,
    world,
)
from tests.contract.cluster_reader.readers import ReaderOf, Serve, details, statuses

CLOUDWATCH = "amazon-cloudwatch-observability"
IDENTITY = "eks-pod-identity-agent"


def described(
    serve: Serve, reader_of: ReaderOf, name: str, answer: dict[str, Any]
) -> tuple[AddOn, ControlPlaneReading]:
    """Read a cluster that has one add-on."""
    answers = world() | {"eks/ListAddons": {"addons": [name]}}
    serve(answers | {f"eks/DescribeAddon.{name}": answer})
    reading = reader_of().read()
    (found,) = reading.control_plane.add_ons or ()
    return found, reading


def test_only_the_add_ons_that_the_product_knows_are_described(
    serve: Serve, reader_of: ReaderOf
) -> None:
    listed = ["vpc-cni", IDENTITY, "kube-proxy", CLOUDWATCH, OBSERVABILITY, GOVERNANCE, "coredns"]
    answers = world() | {"eks/ListAddons": {"addons": listed}}
    answers |= {f"eks/DescribeAddon.{name}": add_on("v1") for name in listed}
    serve(answers)
    reader = reader_of()
    asked: list[str] = []
    reader._eks.meta.events.register(
        "before-call.eks.DescribeAddon",
        lambda params, **_: asked.append(params["url_path"].rpartition("/")[2]),
    )
    found = reader.read().control_plane.add_ons or ()
    assert sorted(asked) == sorted([GOVERNANCE, OBSERVABILITY, CLOUDWATCH, IDENTITY])
    assert {one.name for one in found} == {GOVERNANCE, OBSERVABILITY, CLOUDWATCH, IDENTITY}


def test_nothing_of_a_configuration_survives_but_what_is_asked_for(
    serve: Serve, reader_of: ReaderOf
) -> None:
    reading = described(
        serve,
        reader_of,
        CLOUDWATCH,
        add_on(
            "v6.2.0-eksbuild.1",
            configurationValues=json.dumps(
                {
                    "containerLogs": {"enabled": False, "fluentBit": {"config": SECRET}},
                    "agent": {
                        "config": {
                            "logs": {
                                "metrics_collected": {
                                    "kubernetes": {
                                        "kueue_container_insights": True,
                                        "enhanced_container_insights": True,
                                        "credentials": SECRET,
                                        "accelerated_compute_metrics": [SECRET],
                                    }
                                },
                                "credentials": {"role_arn": SECRET},
                            }
                        }
                    },
                    "agent.config.logs.metrics_collected.kubernetes.kueue_container_insights": SECRET,
                    SECRET: {"enabled": True},
                }
            ),
        ),
    )
    kubernetes = "agent.config.logs.metrics_collected.kubernetes"
    assert reading[0].settings == {
        "containerLogs.enabled": "false",
        f"{kubernetes}.kueue_container_insights": "true",
        f"{kubernetes}.enhanced_container_insights": "true",
    }
    assert SECRET.encode() not in msgspec.json.encode(reading[1])


def test_no_secret_of_any_answer_reaches_the_reading(serve: Serve, reader_of: ReaderOf) -> None:
    answers = world()
    assert SECRET in json.dumps(answers)
    serve(answers)
    reading = reader_of().read()
    assert reading.control_plane == WELL
    assert SECRET.encode() not in msgspec.json.encode(reading)


def test_a_star_is_one_step_of_a_path(serve: Serve, reader_of: ReaderOf) -> None:
    provider = {
        "level": "outside",
        "nodeMetrics": {"level": "ADVANCED", "deeper": {"level": SECRET}},
        "dotted.name": {"level": SECRET},
    }
    values = json.dumps({"metricsProvider": provider})
    found, _ = described(serve, reader_of, OBSERVABILITY, add_on("v1", configurationValues=values))
    assert found.settings == {"metricsProvider.nodeMetrics.level": "ADVANCED"}


@pytest.mark.parametrize("values", [None, "", "  ", "{}"])
def test_a_configuration_that_is_not_given_leaves_everything_at_its_default(
    serve: Serve, reader_of: ReaderOf, values: str | None
) -> None:
    answer = add_on("v1") if values is None else add_on("v1", configurationValues=values)
    found, reading = described(serve, reader_of, OBSERVABILITY, answer)
    assert (found.settings, found.settings_known) == ({}, True)
    assert details(reading) == {}


@pytest.mark.parametrize(
    "values",
    [
        {"password": SECRET},
        [SECRET],
        f"grafana:\n  password: {SECRET}\n",
        f'{{"password": "{SECRET}"',
        f'["{SECRET}"]',
    ],
)
def test_a_configuration_that_cannot_be_read_is_unknown_and_named(
    serve: Serve, reader_of: ReaderOf, values: object
) -> None:
    found, reading = described(
        serve, reader_of, OBSERVABILITY, add_on("v1", configurationValues=values)
    )
    # The add-on itself is there, with what is known of it; its settings are unknown, not default.
    assert found == AddOn(
        name=OBSERVABILITY, version="v1", status="ACTIVE", settings={}, settings_known=False
    )
    assert statuses(reading)["eks/DescribeAddon"] == "ok"
    assert details(reading)["eks/DescribeAddon"].startswith(f"{OBSERVABILITY}: its configuration")
    assert SECRET.encode() not in msgspec.json.encode(reading)


def test_an_add_on_whose_configuration_is_not_asked_for_may_have_any(
    serve: Serve, reader_of: ReaderOf
) -> None:
    found, reading = described(
        serve, reader_of, GOVERNANCE, add_on("v1", configurationValues="a: yaml")
    )
    assert (found.settings, found.settings_known) == ({}, True)
    assert details(reading) == {}


def test_an_add_on_that_is_removed_meanwhile_is_not_installed(
    serve: Serve, reader_of: ReaderOf
) -> None:
    serve(
        world()
        | {f"eks/DescribeAddon.{GOVERNANCE}": error("ResourceNotFoundException", "No addon found")}
    )
    reading = reader_of().read()
    assert [one.name for one in reading.control_plane.add_ons or ()] == [OBSERVABILITY]
    assert statuses(reading) == dict.fromkeys(PARTS, "ok")


@pytest.mark.parametrize("answer", [{"addon": "text"}, {"addon": {"addonVersion": 1}}, {}])
def test_a_malformed_add_on_is_still_installed(
    serve: Serve, reader_of: ReaderOf, answer: dict[str, Any]
) -> None:
    serve(world() | {f"eks/DescribeAddon.{GOVERNANCE}": answer})
    reading = reader_of().read()
    undescribed = AddOn(name=GOVERNANCE, version=None, status=None, settings_known=False)
    assert (reading.control_plane.add_ons or ())[0] == undescribed
    assert statuses(reading) == dict.fromkeys(PARTS, "ok") | {"eks/DescribeAddon": "unreadable"}


def test_a_denial_among_other_faults_is_a_denial(serve: Serve, reader_of: ReaderOf) -> None:
    # Who may not ask has to be given leave; the fault may be gone at the next tick.
    serve(
        world()
        | {
            f"eks/DescribeAddon.{GOVERNANCE}": error("AccessDeniedException"),
            f"eks/DescribeAddon.{OBSERVABILITY}": error("ServerException", "busy"),
        }
    )
    reading = reader_of().read()
    assert statuses(reading)["eks/DescribeAddon"] == "denied"
    assert "eks:DescribeAddon" in details(reading)["eks/DescribeAddon"]
    assert "busy" in details(reading)["eks/DescribeAddon"]
