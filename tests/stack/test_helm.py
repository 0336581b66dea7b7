"""What the chart does: rights, mounts, keys, links of alerts, refusals."""

import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.helm_chart import (
    HELM,
    ROOT,
    Document,
    documents,
    of_kind,
    pods,
    refusal,
    template,
)

from cephqos_alerts.output.build import FILES
from cephqos_alerts.rules.render import render
from cephqos_alerts.rules.settings import RuleSettings
from cephqos_doctor.key import MGR_CAPS, MON_CAPS
from cephqos_exporter.cli import build_parser, every_option, read_settings
from cephqos_exporter.core_options import SOCKETS
from cephqos_stack.logs import COLLECTOR_CONFIG

pytestmark = pytest.mark.full

SETS = {
    "default": {},
    **{
        name: yaml.safe_load((HELM / "values" / f"{name}.yaml").read_text())
        for name in ("minimal", "everything")
    },
}
WITH_ROUTES = {
    "alertmanagerConfig": {
        "enabled": True,
        "receivers": [{"name": "critical"}, {"name": "warning"}],
    }
}
SOURCES = {
    "PrometheusRule": (ROOT / "alerts" / "rules", "{}.yml"),
    "ConfigMap": (ROOT / "dashboards" / "cephqos_dashboards" / "generated", "{}.json"),
}


def of(name: str, *words: str) -> list[Document]:
    return documents(template(*words, values=SETS[name]))


@pytest.fixture(scope="module", params=SETS)
def rendered(request: pytest.FixtureRequest) -> list[Document]:
    return of(request.param)


def containers(pod: Document) -> list[Document]:
    return [*pod.get("initContainers", []), *pod["containers"]]


def but_for_texts(spec: Document) -> Document:
    """Descriptions name first commands, which the chart gives as typed on Rook; routes of ours need
    the namespace as a label."""
    for rule in (rule for group in spec["groups"] for rule in group["rules"]):
        rule.get("annotations", {}).pop("description", None)
        rule.get("labels", {}).pop("namespace", None)  # for the routes
    return spec


def test_first_commands_of_alerts_are_for_rook() -> None:
    for one in of_kind(of("default"), "PrometheusRule"):
        for rule in (rule for group in one["spec"]["groups"] for rule in group["rules"]):
            first = (
                rule.get("annotations", {})
                .get("description", "")
                .partition("Look at this first")[2]
            )
            assert not re.search(r"systemctl|journalctl|cephadm|: `ceph ", first), first
            # On Rook that is a node's name.
            assert "http://{{ $labels.instance }}" not in first, first
            if "-- ceph" in first:
                assert ": `kubectl -n rook-ceph exec deploy/rook-ceph-tools -- ceph " in first


def test_helper_alerts_are_there_only_with_routes_of_ours() -> None:
    """Other routes would send them to the receivers of others."""

    def severities(values: object) -> set[str]:
        return {
            rule["labels"]["severity"]
            for one in of_kind(documents(template(values=values)), "PrometheusRule")
            for group in one["spec"]["groups"]
            for rule in group["rules"]
            if "alert" in rule
        }

    assert severities({}) == {"critical", "warning", "info"}
    assert "none" in severities(WITH_ROUTES)
    assert "none" not in severities(WITH_ROUTES | {"rules": {"config": {"helpers": False}}})
    assert "none" in severities({"rules": {"config": {"helpers": True}}})


def test_rules_and_dashboards_are_those_of_this_repository() -> None:
    found = documents(template(values=WITH_ROUTES))
    for kind, (directory, pattern) in SOURCES.items():
        names = {path.stem for path in directory.glob(pattern.format("*"))}
        assert {
            one["metadata"]["name"].removeprefix("qos-") for one in of_kind(found, kind)
        } == names
        for one in of_kind(found, kind):
            path = directory / pattern.format(one["metadata"]["name"].removeprefix("qos-"))
            if kind == "PrometheusRule":
                assert but_for_texts(one["spec"]) == but_for_texts(yaml.safe_load(path.read_text()))
            else:
                assert json.loads(one["data"][path.name]) == json.loads(path.read_text())


def test_every_argument_is_one_that_the_exporter_takes(rendered: list[Document]) -> None:
    for component, pod in pods(rendered):
        if component == "logs":  # another program: see below
            continue
        [container] = pod["containers"]
        parsed = vars(build_parser(every_option()).parse_args(container["args"]))
        settings = read_settings(parsed, {})
        mounted = [mount["mountPath"] for mount in container["volumeMounts"]]
        if component == "osd":
            for option in every_option():
                if option.name in ("path.procfs", "path.sysfs", "path.dev"):
                    assert settings[option] in mounted
            patterns = settings[SOCKETS]
            assert "/run/ceph/*.asok" in patterns
            assert "/run/ceph" in mounted


def test_pods_keep_to_the_restricted_level_but_for_the_host_paths_of_the_daemonset(
    rendered: list[Document],
) -> None:
    for component, pod in pods(rendered):
        context = pod["securityContext"]
        assert context["runAsNonRoot"] is True
        assert context["runAsUser"] != 0
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostPID", "hostNetwork", "hostIPC"} & pod.keys()
        for container in containers(pod):
            own = container["securityContext"]
            assert own["allowPrivilegeEscalation"] is False
            assert own["readOnlyRootFilesystem"] is True
            assert own["capabilities"] == {"drop": ["ALL"]}
            assert "privileged" not in own
        host = [volume for volume in pod["volumes"] if "hostPath" in volume]
        assert bool(host) == (component in ("osd", "logs"))
        for mount in pod["containers"][0]["volumeMounts"]:
            if mount["name"] in {volume["name"] for volume in host}:
                assert mount["readOnly"] is True


@pytest.mark.parametrize(
    ("name", "sockets"), [("default", "/var/lib/rook/exporter"), ("everything", "/mnt/sockets")]
)
def test_nothing_of_rooks_directory_but_the_admin_sockets_is_mounted(
    name: str, sockets: str
) -> None:
    """The directory has the monitors' keys on nodes where monitors run."""
    [(_, pod)] = [one for one in pods(of(name)) if one[0] == "osd"]
    host = {volume["hostPath"]["path"] for volume in pod["volumes"] if "hostPath" in volume}
    assert host == {"/proc", "/sys", "/dev", sockets}


@pytest.mark.parametrize(
    ("words", "directory"),
    [
        ((), "/mnt/rook/rook-ceph/log"),
        (("--set", "logs.logDirHostPath=/mnt/logs"), "/mnt/logs"),
    ],
)
def test_the_collector_reads_the_logs_and_says_of_which_cluster_and_node_they_are(
    words: tuple[str, ...], directory: str
) -> None:
    [pod] = [p for c, p in pods(of("everything", *words)) if c == "logs"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert volumes["logs"]["hostPath"] == {"path": directory, "type": "Directory"}
    [container] = pod["containers"]
    config = COLLECTOR_CONFIG.read_text()
    mounts = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
    assert f"${{env:CEPH_LOGS:-{mounts['logs']}}}" in config
    assert f"${{env:COLLECTOR_STATE:-{mounts['state']}}}" in config
    given = {one.pop("name"): one for one in container["env"]}
    assert given.keys() <= set(re.findall(r"\$\{env:(\w+)", config))
    assert given["COLLECTOR_HOST"] == {"valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    assert given["COLLECTOR_AUDIT"]["value"] == "yes"
    # The only thing of this secret that is none.
    assert given["CEPH_CLUSTER"]["valueFrom"]["secretKeyRef"]["key"] == "fsid"
    assert str(given).count("secretKeyRef") == 1
    assert pod["securityContext"]["runAsUser"] == 167


def test_the_output_of_containers_is_read_by_root_without_capabilities() -> None:
    [pod] = [p for c, p in pods(of("everything", "--set", "logs.source=pods")) if c == "logs"]
    assert pod["securityContext"]["runAsUser"] == 0  # whose the runtime's files are
    assert pod["securityContext"]["runAsNonRoot"] is False
    [container] = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    [volume] = [it for it in pod["volumes"] if "hostPath" in it]
    assert volume["hostPath"] == {"path": "/var/log/pods", "type": "Directory"}
    [mount] = [it for it in container["volumeMounts"] if it["name"] == volume["name"]]
    assert mount["readOnly"] is True
    given = {one["name"]: one.get("value") for one in container["env"]}
    assert given["CEPH_PODS"] == mount["mountPath"]
    assert given["CEPH_NAMESPACE"] == "rook-ceph"  # another cluster on this node is another's
    assert given.keys() <= set(re.findall(r"\$\{env:(\w+)", COLLECTOR_CONFIG.read_text()))


def test_no_log_is_collected_unless_it_is_asked_for() -> None:
    assert "logs" not in {component for component, _ in pods(of("default"))}


@pytest.mark.parametrize("version", ["1.29.0", "1.30.0"])
def test_selinux_and_apparmor_let_the_exporter_reach_osds_and_no_other_pod_reaches_them(
    version: str,
) -> None:
    """OSDs are privileged containers: ordinary ones may not connect to them or look at them."""
    found = of("default", "--kube-version", version)
    [daemons] = of_kind(found, "DaemonSet")
    meta = daemons["spec"]["template"]["metadata"]
    profiles = {
        component: pod["securityContext"].get("appArmorProfile") for component, pod in pods(found)
    }
    if version == "1.29.0":  # the API has no field for it
        key = "container.apparmor.security.beta.kubernetes.io/exporter"
        assert meta["annotations"] == {key: "unconfined"}
        assert profiles == {"osd": None, "cluster": None}
    else:
        assert "annotations" not in meta
        assert profiles == {"osd": {"type": "Unconfined"}, "cluster": None}
    for component, pod in pods(found):
        expected = {"type": "spc_t"} if component == "osd" else None
        assert pod["securityContext"].get("seLinuxOptions") == expected


def test_an_update_replaces_a_tenth_at_a_time_and_ends_where_pods_are_pending() -> None:
    """A pending pod counts as unavailable, and against maxUnavailable; against maxSurge only beside
    an old pod that is ready (k8s.io/kubernetes, pkg/controller/daemon/update.go)."""
    for daemons in of_kind(of("everything"), "DaemonSet"):
        update = daemons["spec"]["updateStrategy"]["rollingUpdate"]
        assert update == {"maxSurge": "10%", "maxUnavailable": 0}


def test_series_of_a_node_go_on_when_its_pod_is_replaced() -> None:
    [monitor] = of_kind(of("default"), "PodMonitor")
    relabelings = monitor["spec"]["podMetricsEndpoints"][0]["relabelings"]
    assert {"action": "labeldrop", "regex": "pod|container|endpoint"} in relabelings


def test_rules_that_were_built_elsewhere_take_the_place_of_the_charts(tmp_path: Path) -> None:
    """Here with a label for the site, which a chart cannot compute."""
    settings = RuleSettings(site_labels=("k8s_cluster",))
    words = []
    for name, groups in FILES.items():
        (tmp_path / name).write_text(yaml.safe_dump({"groups": render(groups, settings)["groups"]}))
        words += ["--set-file", f"rules.files.{name.removesuffix('.yml')}={tmp_path / name}"]
    found = of_kind(documents(template(*words, values=WITH_ROUTES)), "PrometheusRule")
    assert len(found) == len(FILES)
    specs = {one["metadata"]["name"].removeprefix("qos-"): one["spec"] for one in found}
    for name, groups in FILES.items():
        assert but_for_texts(specs[name.removesuffix(".yml")]) == but_for_texts(
            render(groups, settings)
        )
    (tmp_path / "osds.yml").write_text("no rules\n")
    assert "rules.files.osds: expected groups of rules" in refusal(*words)


def test_the_label_cluster_may_be_the_namespace_that_rooks_exporter_has() -> None:
    """On metrics that have it, and on logs."""
    found = of("everything", "--set", "rook.clusterLabel=namespace,rook.namespace=rook-two")
    renamed = {
        "sourceLabels": ["cluster"],
        "regex": ".+",
        "targetLabel": "cluster",
        "replacement": "rook-two",
    }
    monitors = [*of_kind(found, "PodMonitor"), *of_kind(found, "ServiceMonitor")]
    assert len(monitors) == 3
    for monitor in monitors:
        [endpoint] = monitor["spec"].get("podMetricsEndpoints") or monitor["spec"]["endpoints"]
        assert renamed in endpoint["metricRelabelings"]
    [logs] = [pod for component, pod in pods(found) if component == "logs"]
    assert {"name": "CEPH_CLUSTER", "value": "rook-two"} in logs["containers"][0]["env"]
    assert "targetLabel: cluster" not in template(values=SETS["everything"])


@pytest.mark.parametrize(
    "runbooks", ["https://w.example.org/runbooks", "https://w.example.org/runbooks/{page}.md"]
)
def test_links_of_alerts_lead_where_rules_build_would_let_them_lead(runbooks: str) -> None:
    links = {"dashboard": "https://grafana.example.org/d", "runbook": runbooks}
    set_links = ",".join(f"rules.{name}Url={url}" for name, url in links.items())
    found = of_kind(documents(template("--set", set_links, values=WITH_ROUTES)), "PrometheusRule")
    settings = RuleSettings(dashboard_url=links["dashboard"], runbook_url=links["runbook"])
    specs = {one["metadata"]["name"].removeprefix("qos-"): one["spec"] for one in found}
    for name, groups in FILES.items():
        assert but_for_texts(specs[name.removesuffix(".yml")]) == but_for_texts(
            render(groups, settings)
        )


def test_without_urls_alerts_have_no_links() -> None:
    found = of_kind(of("default"), "PrometheusRule")
    for one in found:
        name = one["metadata"]["name"].removeprefix("qos-")
        if groups := FILES.get(f"{name}.yml"):
            assert but_for_texts(one["spec"]) == but_for_texts(render(groups, RuleSettings()))
        assert not re.search(r"(?:runbook|dashboard)_url", json.dumps(one["spec"]))


def typed() -> Iterator[list[str]]:
    """What the page tells to give helm: whole commands, and options for them in its tables."""
    page = Path("docs/install/rook.md").read_text()
    lines = "".join(re.findall(r"```sh\n(.*?)```", page, re.DOTALL)).replace("\\\n", " ")
    script = ["helm() { printf '%q ' \"$@\"; echo; }"]
    script += re.findall(r"^(?:REGISTRY=|helm (?:install|upgrade) ).*$", lines, re.MULTILINE)
    argv = ["bash", "-euc", "\n".join(script)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=30)
    yield from (shlex.split(line)[3:] for line in done.stdout.splitlines())
    options = re.findall(r"`(--set [^`]*)`", page)
    yield from (
        shlex.split(one.replace("=URL", "=https://w.example.org/runbooks")) for one in options
    )


def test_what_the_page_tells_to_type_renders() -> None:
    """A tag may be a number: `--set` makes one of it, which the chart refuses."""
    found = list(typed())
    assert len(found) >= 6
    for words in found:
        given = [word for word in words if word != "--reset-then-reuse-values"]
        assert of("default", *given), words


def test_in_another_namespace_it_is_for_the_cluster_of_that_namespace() -> None:
    """Two clusters share no key and no log directory, and no value has to be set for that."""
    found = of("everything", "--namespace", "second")
    assert {one["metadata"]["namespace"] for one in found} == {"second"}
    beside = [str(p["affinity"]) + str(p["volumes"]) for c, p in pods(found) if "affinity" in p]
    assert ["'namespaces': ['second']" in text for text in beside] == [True, True]
    assert ["/mnt/rook/second/log" in text for text in beside].count(True) == 1
    elsewhere = of("default", "--set", "rook.namespace=ceph")
    assert [one["metadata"]["namespace"] for one in of_kind(elsewhere, "CephClient")] == ["ceph"]


def test_no_right_is_asked_of_the_api_server(rendered: list[Document]) -> None:
    found = rendered
    kinds = {one["kind"] for one in found}
    assert not kinds & {"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"}
    accounts = of_kind(found, "ServiceAccount")
    assert all(account["automountServiceAccountToken"] is False for account in accounts)
    used = [pod["serviceAccountName"] for _, pod in pods(found)]
    assert sorted(used) == sorted(account["metadata"]["name"] for account in accounts)
    assert all(pod["automountServiceAccountToken"] is False for _, pod in pods(found))


def test_two_cluster_roles_never_run_at_once_by_our_doing(rendered: list[Document]) -> None:
    for one in of_kind(rendered, "Deployment"):
        assert one["spec"]["replicas"] == 1
        assert one["spec"]["strategy"] == {"type": "Recreate"}


def test_exporters_stand_beside_osds_only(rendered: list[Document]) -> None:
    [pod] = [pod for component, pod in pods(rendered) if component == "osd"]
    affinity = pod["affinity"]["podAffinity"]
    [term] = affinity["requiredDuringSchedulingIgnoredDuringExecution"]
    [expression] = term["labelSelector"]["matchExpressions"]
    assert expression == {"key": "app", "operator": "In", "values": ["rook-ceph-osd"]}
    assert term["topologyKey"] == "kubernetes.io/hostname"


def test_keys_of_rook_have_the_documented_caps_and_stand_in_no_argument() -> None:
    found = of("everything")
    caps = {one["metadata"]["name"]: one["spec"]["caps"] for one in of_kind(found, "CephClient")}
    assert caps["cephqos"] == {"mon": MON_CAPS, "mgr": MGR_CAPS}
    rw = "allow rw pool={} namespace=cephqos-probe"
    assert caps["cephqos-probe"]["osd"] == ", ".join(map(rw.format, ("rbd", "cephfs-data")))
    for component, pod in pods(found):
        for container in containers(pod):
            assert ("env" in container) == (component == "logs")


def test_the_script_that_makes_conf_and_keyring_makes_what_ceph_reads(tmp_path: Path) -> None:
    [pod] = [pod for component, pod in pods(of("default")) if component == "cluster"]
    [init] = pod["initContainers"]
    (tmp_path / "rook/config").mkdir(parents=True)
    (tmp_path / "rook/client").mkdir()
    (tmp_path / "ceph").mkdir()
    (tmp_path / "rook/config/mon_host").write_text("[v2:10.0.0.1:3300,v1:10.0.0.1:6789]\n")
    (tmp_path / "rook/client/cephqos").write_text("AQD0secret==")
    code = init["args"][0].replace('"/rook"', repr(str(tmp_path / "rook")))
    code = code.replace('"/etc/ceph"', repr(str(tmp_path / "ceph")))
    subprocess.run([*init["command"][:-1], "-c", code], check=True, timeout=30)
    assert "mon_host = [v2:10.0.0.1:3300" in (tmp_path / "ceph/ceph.conf").read_text()
    keyring = tmp_path / "ceph/keyring"
    assert keyring.read_text() == "[client.cephqos]\nkey = AQD0secret==\n"
    assert keyring.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "wrong",
    [
        "osd.prot=1",
        "cephUser=0",
        "probe.enabled=true",
        "image.digest=latest",
        "rook.dataDirHostPath=relative",
        "monitors.interval=often",
        "rules.dashboardUrl=grafana",
        "osd.seLinuxType=spc t",
        "osd.appArmorProfile=Localhost",
        "cluster.priorityClassName=High_Up",
        "logs.enabled=true",
        "logs.lokiUrl=http://me:secret@loki",
        "pods.prot=1",
        "logs.tolerations=all",
        "monitors.scrapeTimeout=soon",
        "imagePullSecrets={}",
        "alertmanagerConfig.enabled=true",
        "rules.config.severities.critcal=page",
        "rules.config.labels.cluster=mine",
        "rules.config=helpers: perhaps",
        "rules.config=severities: {critical: warning}",
        "rules.config=annotations: {wiki: 'https://{{ .Value'}",
    ],
)
def test_values_that_cannot_be_meant_are_refused(wrong: str) -> None:
    assert re.search(r"schema|cephqos: ", refusal("--set", wrong))


def test_alerts_reach_receivers_by_the_routes_of_our_alertmanager() -> None:
    """The operator adds the resource's namespace to each matcher: so alerts have it as a label."""
    found = documents(template(values=WITH_ROUTES))
    [config] = of_kind(found, "AlertmanagerConfig")
    ours = yaml.safe_load((ROOT / "alerts/alertmanager/alertmanager.yml").read_text())

    def matchers(given: list[Document]) -> list[str]:
        return [f'{one["name"]}{one["matchType"]}"{one["value"]}"' for one in given]

    spec = config["spec"]
    for rule, our in zip(spec["inhibitRules"], ours["inhibit_rules"], strict=True):
        assert matchers(rule["sourceMatch"]) == our["source_matchers"]
        assert matchers(rule["targetMatch"]) == our["target_matchers"]
        assert rule["equal"] == our["equal"]

    def same(route: Document, our: Document) -> None:
        assert matchers(route.get("matchers", [])) == our.get("matchers", [])
        for theirs, key in (("receiver", "receiver"), ("groupBy", "group_by")):
            assert route.get(theirs) == our.get(key)
        for theirs, key in (("groupWait", "group_wait"), ("repeatInterval", "repeat_interval")):
            assert route.get(theirs) == our.get(key)
        for below, of_ours in zip(route.get("routes", []), our.get("routes", []), strict=True):
            same(below, of_ours)

    same(spec["route"], ours["route"])
    assert {one["name"] for one in spec["receivers"]} == {one["name"] for one in ours["receivers"]}
    for one in of_kind(found, "PrometheusRule"):
        for rule in (rule for group in one["spec"]["groups"] for rule in group["rules"]):
            if "alert" in rule:
                assert rule["labels"]["namespace"] == config["metadata"]["namespace"]
    assert 'has no receiver "warning"' in refusal(
        values={"alertmanagerConfig": {"enabled": True, "receivers": [{"name": "critical"}]}}
    )
