"""The label of a site in PromQL."""

import pytest

from cephqos_base.errors import UsageError
from cephqos_base.site import keep, only, parse_site

SITE = {"k8s_cluster": "prod-eu"}
MATCHER = 'k8s_cluster="prod-eu"'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("sum by (cluster, class) (a)", "sum by (cluster, class, s) (a)"),
        ("a / on (instance) group_left (host) b", "a / on (instance, s) group_left (host) b"),
        ("max by (host) (a)", "max by (host, s) (a)"),
        ("sum by (le) (a) * on () b", "sum by (le) (a) * on () b"),
        ("sum without (cluster) (a)", "sum without (cluster) (a)"),
        ("sum by (cluster, s) (a)", "sum by (cluster, s) (a)"),
    ],
)
def test_what_is_grouped_or_matched_by_a_place_is_by_the_site_too(before: str, after: str) -> None:
    assert keep(before, ["s"]) == after
    assert keep(before, []) == before


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("up", f"up{{{MATCHER}}}"),
        ("up{}", f"up{{{MATCHER}}}"),
        ('a:b{c="}",}[5m]', f'a:b{{c="}}",{MATCHER}}}[5m]'),
        ("sum by (up) (up) # up", f"sum by (up) (up{{{MATCHER}}}) # up"),
        ("rate(a[$window] offset ${shift}s)", f"rate(a{{{MATCHER}}}[$window] offset ${{shift}}s)"),
    ],
)
def test_every_selector_of_an_expression_gets_the_matcher(before: str, after: str) -> None:
    assert only(before, SITE) == after
    assert only(before, {}) == before


def test_a_value_stays_one_value() -> None:
    assert only("up", {"s": 'a"} or up{b="\\'}) == 'up{s="a\\"} or up{b=\\"\\\\"}'


@pytest.mark.parametrize("given", ["prod-eu", "=prod-eu", "k8s_cluster=", "k8s-cluster=prod"])
def test_a_site_is_a_label_with_its_value(given: str) -> None:
    assert parse_site(["k8s_cluster=a=b"]) == {"k8s_cluster": "a=b"}
    with pytest.raises(UsageError, match="expected NAME=VALUE, such as k8s_cluster=prod-eu"):
        parse_site([given])
