"""Addresses of a Redis Cluster, and the hash tag that keeps a cell's keys together."""

from __future__ import annotations

import json

import pytest

from brainq.contracts.cell import parse_cells
from brainq.errors import InvalidInput, SetupError
from brainq.runtime.settings.cluster_url import as_cluster_url, in_slot, key_prefix, parse_cluster_url
from brainq.runtime.settings.deployment import Settings, load_settings

CLUSTER = "redis+cluster://a:1,b:2/"


def test_each_seed_has_the_login_and_the_options_of_the_url() -> None:
    found = parse_cluster_url("rediss+cluster://me:p%40ss@a:1,b,[::1]:3/0?ssl_cert_reqs=none&tag=shop")
    assert found.tag == "shop"
    assert [seed.client_url for seed in found.seeds] == [
        f"rediss://me:p%40ss@{host}/0?ssl_cert_reqs=none" for host in ("a:1", "b:6379", "[::1]:3")
    ]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("redis+cluster://:secret@/", "has the form redis"),
        ("redis+cluster://:secret@a:1,,b:2/", "has the form redis"),
        ("redis+cluster://:secret@a:1/1", "has no database but 0"),
        ("redis+cluster://:secret@a:x/", "port"),
        ("redis+cluster://:secret@a:1/?tag=a}b", "option tag"),
        ("redis+cluster://:secret@a:1/?tag=" + "a" * 65, "option tag"),
    ],
)
def test_any_other_is_refused_without_its_password(url: str, message: str) -> None:
    with pytest.raises(SetupError, match=message) as refused:
        load_settings(redis_url=url)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "cell", "expected"),
    [
        (CLUSTER, "", CLUSTER + "?tag=bq"),
        (CLUSTER, "a", CLUSTER + "?tag=bq.a"),
        (CLUSTER + "?ssl_ca_certs=x", "", CLUSTER + "?ssl_ca_certs=x&tag=bq"),
        (CLUSTER + "?tag=own", "a", CLUSTER + "?tag=own"),
        ("redis+cluster://u:a?tag=b@h:1/", "", "redis+cluster://u:a?tag=b@h:1/?tag=bq"),
        ("redis://a:1/0", "a", "redis://a:1/0"),
    ],
)
def test_a_cells_tag_is_added_to_the_url_of_a_cluster_alone(url: str, cell: str, expected: str) -> None:
    assert in_slot(url, "bq:", cell) == expected
    assert in_slot(expected, "bq:", cell) == expected


def test_keys_on_a_cluster_have_the_tag_as_their_prefix() -> None:
    assert key_prefix(CLUSTER + "?tag=bq.a", "bq:") == "{bq.a}:"
    assert key_prefix("redis://a:1/0", "bq:") == "bq:"


def test_the_settings_name_the_tag() -> None:
    assert load_settings(redis_url=CLUSTER).key_prefix == "{bq}:"
    assert load_settings(redis_url=CLUSTER, prefix="shop:").key_prefix == "{shop}:"
    assert load_settings(redis_url="redis://a:1/0", prefix="shop:").key_prefix == "shop:"


def of_cells(first: str, second: str) -> Settings:
    urls = {"a": first, "b": second}
    return load_settings(
        cells=json.dumps({name: {"redis": url, "sql": f"sqlite:////tmp/{name}.db"} for name, url in urls.items()})
    )


def test_cells_of_one_cluster_have_slots_of_their_own() -> None:
    settings = of_cells(CLUSTER, CLUSTER)
    assert settings.cells is not None
    prefixes = [settings.of_cell(cell).key_prefix for cell in parse_cells(settings.cells.get_secret_value())]
    assert prefixes == ["{bq.a}:", "{bq.b}:"]
    assert settings.key_prefix == "{bq.a}:"


def test_cells_that_name_the_same_slot_are_refused() -> None:
    with pytest.raises((InvalidInput, SetupError), match="give each cell its own"):
        of_cells(CLUSTER + "?tag=x", CLUSTER + "?tag=x")


def test_the_url_of_a_node_is_told_as_that_of_its_cluster() -> None:
    assert as_cluster_url("rediss://me:pw@a:1/0?x=y") == "rediss+cluster://me:pw@a:1/"


def test_a_prefix_with_a_hash_tag_is_the_tag_of_a_cluster() -> None:
    assert load_settings(prefix="{shop}:", redis_url="redis://a:1/0").key_prefix == "{shop}:"
    assert load_settings(prefix="{shop}:", redis_url=CLUSTER).key_prefix == "{shop}:"
    for wrong in ("{shop:", "shop}:", "{}:"):
        with pytest.raises(SetupError, match="BRAINQ_PREFIX"):
            load_settings(prefix=wrong)
