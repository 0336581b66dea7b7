"""Secrets among a cluster's options do not reach an archive."""

import json
from typing import Any

import pytest
from tests.recorded import RECORDINGS, RELEASES

from cephqos_loadgen import withheld
from cephqos_loadgen.run import environment


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mgr/dashboard/GRAFANA_API_PASSWORD", "hunter2"),
        ("mgr/dashboard/RGW_API_SECRET_KEY", "hunter2"),
        ("mgr/dashboard/RGW_API_ACCESS_KEY", "hunter2"),
        ("mgr/dashboard/MULTICLUSTER_CONFIG", '{"a": {"token": "hunter2"}}'),
        ("mgr/influx/password", "1234"),
        ("mgr/cephadm/registry_password", "hunter2"),
        ("rgw_keystone_admin_password", "hunter2"),
        ("rgw_keystone_admin_token", "hunter2"),
        ("rgw_crypt_default_encryption_key", "hunter2"),
        ("key", "AQhunter2=="),
        ("mgr/x/authtoken", "hunter2"),
        ("mgr/dashboard/PROMETHEUS_API_HOST", "https://me:hunter2@host:9095"),
    ],
)
def test_what_may_be_a_secret_is_not_recorded(name: str, value: str) -> None:
    kept = withheld.recorded(name, value)
    assert kept != value
    assert "hunter2" not in kept
    assert withheld.diff({name: {"default": "", "mon": value, "final": value}}) == {
        name: {"default": "", "mon": kept, "final": kept}
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("osd_mclock_profile", "balanced"),
        ("osd_mclock_max_capacity_iops_hdd", "315.000000"),
        ("osd_deep_scrub_large_omap_object_key_threshold", "200000"),
        ("keyring", "/etc/ceph/keyring"),
        ("mgr/balancer/mode", "upmap"),
        ("bluestore_rocksdb_options", "compression=kNoCompression,max_write_buffer_number=64"),
        ("mon_host", "[v2:127.0.0.1:6789/0]"),
    ],
)
def test_what_shapes_a_run_is_recorded_as_it_is(name: str, value: str) -> None:
    assert withheld.recorded(name, value) == value
    assert withheld.recorded(name, "") == ""


@pytest.mark.parametrize("release", RELEASES)
def test_of_real_osds_nothing_is_withheld(release: str) -> None:
    options = json.loads((RECORDINGS / release / "load" / "config+diff.json").read_text())["diff"]
    assert options
    assert withheld.diff(options) == options


CONF = """\
[global]
mon host = [v2:10.0.0.1:3300/0,v1:10.0.0.1:6789/0]
auth_client_required = cephx   # a remark
[client.admin]
key = AQhunter2==
# key = AQhunter2-of-last-year==
rgw keystone admin password = hunter2 \\
  hunter2
rgw_keystone_url = http://me:hunter2@host:5000
keyring = /etc/ceph/ceph.client.admin.keyring
"""


def test_the_clients_configuration_is_recorded_without_keys() -> None:
    kept = withheld.conf(CONF)
    assert "hunter2" not in kept
    assert kept.splitlines()[:4] == CONF.splitlines()[:4]
    assert kept.splitlines()[-1] == CONF.splitlines()[-1]
    assert f"key = {withheld.WITHHELD}" in kept
    assert "rgw_keystone_url = http://(not recorded)@host:5000" in kept
    plain = "[osd]\nosd_mclock_profile=balanced\n"
    assert withheld.conf(plain) == plain


class Cluster:
    fsid = "f"

    async def command(self, prefix: str, **_: Any) -> Any:
        if prefix != "config dump":
            return []
        return [
            {"section": "mgr", "name": "mgr/dashboard/GRAFANA_API_PASSWORD", "value": "hunter2"},
            {"section": "osd", "name": "osd_mclock_profile", "value": "balanced"},
        ]

    async def up_osds(self) -> list[int]:
        return [0]

    async def once(self, prefix: str, **_: Any) -> Any:
        return {"diff": {"rgw_ldap_secret": {"default": "", "file": "hunter2"}}}


async def test_the_environment_of_a_run_holds_no_password() -> None:
    found = await environment._cluster(Cluster())  # type: ignore[arg-type]
    assert "hunter2" not in json.dumps(found)
    assert "balanced" in json.dumps(found["config"])
    assert "rgw_ldap_secret" in json.dumps(found["options_not_default"])
