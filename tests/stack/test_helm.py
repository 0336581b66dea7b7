"""The chart: linted, rendered for three sets of values, checked against the APIs' own schemas."""

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests import kube_schemas

from cephqos_alerts.output.build import FILES
from cephqos_alerts.rules.render import render
from cephqos_alerts.rules.settings import RuleSettings
from cephqos_doctor.key import MGR_CAPS, MON_CAPS
from cephqos_exporter.cli import build_parser, every_option, read_settings
from cephqos_exporter.core_options import SOCKETS
from cephqos_stack.logs import COLLECTOR_CONFIG
from cephqos_stack.tools import find_tool

pytestmark = pytest.mark.full


ROOT = Path(__file__).parents[2]
HELM = ROOT / "deploy" / "helm"
CHART = HELM / "cephqos"
GOLDEN = ROOT / "tests" / "golden" / "helm"
SETS = ("default", "minimal", "everything")
SOURCES = {
    "PrometheusRule": (ROOT / "alerts" / "rules", "{}.yml"),
    "ConfigMap": (ROOT / "dashboards" / "cephqos_dashboards" / "generated", "{}.json"),
}
Document = dict[str, Any]


def helm(*words: str) -> str:
    tool = find_tool("helm")
    if tool is None:
        pytest.skip("helm is missing: make tools")
    done = subprocess.run(
        [str(tool), *words], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def template(name: str, *words: str) -> str:
    values = [] if name == "default" else ["--values", str(HELM / "values" / f"{name}.yaml")]
    where = ["--namespace", "rook-ceph", "--kube-version", "1.33.0"]
    return helm("template", "qos", str(CHART), *where, *values, *words)


def documents(rendered: str) -> list[Document]:
    return [document for document in yaml.safe_load_all(rendered) if document]


@pytest.fixture(scope="module", params=SETS)
def rendered(request: pytest.FixtureRequest) -> tuple[str, str]:
    return request.param, template(request.param)


def of_kind(found: list[Document], kind: str) -> list[Document]:
    return [one for one in found if one["kind"] == kind]


def pods(found: list[Document]) -> Iterator[tuple[str, Document]]:
    for kind in ("DaemonSet", "Deployment"):
        for one in of_kind(found, kind):
            component = one["metadata"]["labels"]["app.kubernetes.io/component"]
            yield component, one["spec"]["template"]["spec"]


def containers(pod: Document) -> list[Document]:
    return [*pod.get("initContainers", []), *pod["containers"]]


def test_lint_has_nothing_to_say() -> None:
    for name in SETS:
        values = [] if name == "default" else ["--values", str(HELM / "values" / f"{name}.yaml")]
        helm("lint", "--strict", str(CHART), *values)


def test_what_is_rendered_is_what_was_looked_at(
    rendered: tuple[str, str], request: pytest.FixtureRequest
) -> None:
    name, text = rendered
    found = documents(text)
    for one in found:
        _name_the_source(one)
    shown = yaml.safe_dump_all(found, sort_keys=False, width=100)
    golden = GOLDEN / f"{name}.yaml"
    if request.config.getoption("--regenerate"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(shown)
    assert shown == golden.read_text(), f"look at it, then pytest {__file__} --regenerate"


def _name_the_source(one: Document) -> None:
    """Rules and dashboards must be those of this repository; the golden file names them only."""
    if one["kind"] not in SOURCES:
        return
    directory, pattern = SOURCES[one["kind"]]
    path = directory / pattern.format(one["metadata"]["name"].removeprefix("qos-"))
    if one["kind"] == "PrometheusRule":
        assert one["spec"] == yaml.safe_load(path.read_text())
        one["spec"] = f"content of {path.relative_to(ROOT)}"
    else:
        assert json.loads(one["data"][path.name]) == json.loads(path.read_text())
        one["data"] = {path.name: f"content of {path.relative_to(ROOT)}"}


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where kubeconform finds them."""
    try:
        kinds = {one["kind"] for name in SETS for one in documents(template(name))}
        return kube_schemas.write(tmp_path_factory.mktemp("schemas"), kinds)
    except kube_schemas.ModuleMissing as missing:
        pytest.skip(str(missing))


def test_everything_fits_the_schemas_of_kubernetes_the_operator_and_rook(
    rendered: tuple[str, str], schemas: str
) -> None:
    tool = find_tool("kubeconform")
    if tool is None:
        pytest.skip("kubeconform is missing: make tools")
    argv = [str(tool), "-strict", "-summary", "-output", "json", "-schema-location", schemas, "-"]

    def judged(text: str) -> Any:
        done = subprocess.run(
            argv, input=text, capture_output=True, text=True, check=False, timeout=120
        )
        return json.loads(done.stdout)

    _, text = rendered
    told = judged(text)
    assert told["summary"]["valid"] == len(documents(text)), told["resources"][0]
    # It can fail: of a core kind, and of a custom one.
    for right, wrong in (("containerPort:", "containerPrt:"), ("podSelector:", "podSelectr:")):
        assert judged(text.replace(right, wrong))["summary"]["invalid"] > 0


def test_every_argument_is_one_that_the_exporter_takes(rendered: tuple[str, str]) -> None:
    for component, pod in pods(documents(rendered[1])):
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
    rendered: tuple[str, str],
) -> None:
    for component, pod in pods(documents(rendered[1])):
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
    [(_, pod)] = [one for one in pods(documents(template(name))) if one[0] == "osd"]
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
    [pod] = [p for c, p in pods(documents(template("everything", *words))) if c == "logs"]
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
    assert given["COLLECTOR_AUDIT"]["value"] == "no"
    # The only thing of this secret that is none.
    assert given["CEPH_CLUSTER"]["valueFrom"]["secretKeyRef"]["key"] == "fsid"
    assert str(given).count("secretKeyRef") == 1
    assert pod["securityContext"]["runAsUser"] == 167


def test_no_log_is_collected_unless_it_is_asked_for() -> None:
    assert "logs" not in {component for component, _ in pods(documents(template("default")))}


@pytest.mark.parametrize("version", ["1.29.0", "1.30.0"])
def test_selinux_and_apparmor_let_the_exporter_reach_osds_and_no_other_pod_reaches_them(
    version: str,
) -> None:
    """OSDs are privileged containers: ordinary ones may not connect to them or look at them."""
    found = documents(template("default", "--kube-version", version))
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


def test_an_update_ends_even_where_pods_are_pending_on_nodes_without_osds() -> None:
    for name, expected in (("default", "100%"), ("everything", "10%")):
        found = of_kind(documents(template(name)), "DaemonSet")
        assert len(found) == (2 if name == "everything" else 1)
        for daemons in found:
            update = daemons["spec"]["updateStrategy"]["rollingUpdate"]
            assert update == {"maxUnavailable": expected}


def test_series_of_a_node_go_on_when_its_pod_is_replaced() -> None:
    [monitor] = of_kind(documents(template("default")), "PodMonitor")
    relabelings = monitor["spec"]["podMetricsEndpoints"][0]["relabelings"]
    assert {"action": "labeldrop", "regex": "pod|container|endpoint"} in relabelings


@pytest.mark.parametrize(
    "runbooks", ["https://w.example.org/runbooks", "https://w.example.org/runbooks/{page}.md"]
)
def test_links_of_alerts_lead_where_rules_build_would_let_them_lead(runbooks: str) -> None:
    links = {"dashboard": "https://grafana.example.org/d", "runbook": runbooks}
    set_links = ",".join(f"rules.{name}Url={url}" for name, url in links.items())
    found = of_kind(documents(template("default", "--set", set_links)), "PrometheusRule")
    settings = RuleSettings(dashboard_url=links["dashboard"], runbook_url=links["runbook"])
    specs = {one["metadata"]["name"].removeprefix("qos-"): one["spec"] for one in found}
    for name, groups in FILES.items():
        assert specs[name.removesuffix(".yml")] == render(groups, settings)
    slos = json.dumps(specs["slo"])
    assert links["runbook"].partition("/{")[0] in slos


def test_without_urls_alerts_have_no_links() -> None:
    found = of_kind(documents(template("default")), "PrometheusRule")
    for one in found:
        name = one["metadata"]["name"].removeprefix("qos-")
        if groups := FILES.get(f"{name}.yml"):
            assert one["spec"] == render(groups, RuleSettings())
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
        assert documents(template("default", *given)), words


def test_in_another_namespace_it_is_for_the_cluster_of_that_namespace() -> None:
    """Two clusters share no key and no log directory, and no value has to be set for that."""
    found = documents(template("everything", "--namespace", "second"))
    assert {one["metadata"]["namespace"] for one in found} == {"second"}
    beside = [str(p["affinity"]) + str(p["volumes"]) for c, p in pods(found) if "affinity" in p]
    assert ["'namespaces': ['second']" in text for text in beside] == [True, True]
    assert ["/mnt/rook/second/log" in text for text in beside].count(True) == 1
    elsewhere = documents(template("default", "--set", "rook.namespace=ceph"))
    assert [one["metadata"]["namespace"] for one in of_kind(elsewhere, "CephClient")] == ["ceph"]


def test_values_of_an_older_chart_still_render(tmp_path: Path) -> None:
    """`helm upgrade --reuse-values` gives a chart none of its own defaults."""
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    newer = {"priorityClassName", "seLinuxType", "appArmorProfile"}
    chart = tmp_path / "cephqos"
    shutil.copytree(CHART, chart)
    del values["logs"]
    for role in ("osd", "cluster", "probe"):
        values[role] = {k: v for k, v in values[role].items() if k not in newer}
    (chart / "values.yaml").write_text(yaml.safe_dump(values))
    found = documents(helm("template", "qos", str(chart), "--kube-version", "1.29.0"))
    assert "seLinuxOptions" not in next(p for c, p in pods(found) if c == "osd")["securityContext"]


def test_no_right_is_asked_of_the_api_server(rendered: tuple[str, str]) -> None:
    found = documents(rendered[1])
    kinds = {one["kind"] for one in found}
    assert not kinds & {"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"}
    [account] = of_kind(found, "ServiceAccount")
    assert account["automountServiceAccountToken"] is False
    assert all(pod["automountServiceAccountToken"] is False for _, pod in pods(found))


def test_two_cluster_roles_never_run_at_once_by_our_doing(rendered: tuple[str, str]) -> None:
    for one in of_kind(documents(rendered[1]), "Deployment"):
        assert one["spec"]["replicas"] == 1
        assert one["spec"]["strategy"] == {"type": "Recreate"}


def test_exporters_stand_beside_osds_only(rendered: tuple[str, str]) -> None:
    [pod] = [pod for component, pod in pods(documents(rendered[1])) if component == "osd"]
    affinity = pod["affinity"]["podAffinity"]
    [term] = affinity["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["labelSelector"]["matchLabels"] == {"app": "rook-ceph-osd"}
    assert term["topologyKey"] == "kubernetes.io/hostname"


def test_keys_of_rook_have_the_documented_caps_and_stand_in_no_argument() -> None:
    found = documents(template("everything"))
    caps = {one["metadata"]["name"]: one["spec"]["caps"] for one in of_kind(found, "CephClient")}
    assert caps["cephqos"] == {"mon": MON_CAPS, "mgr": MGR_CAPS}
    rw = "allow rw pool={} namespace=cephqos-probe"
    assert caps["cephqos-probe"]["osd"] == ", ".join(map(rw.format, ("rbd", "cephfs-data")))
    for component, pod in pods(found):
        for container in containers(pod):
            assert ("env" in container) == (component == "logs")


def test_the_script_that_makes_conf_and_keyring_makes_what_ceph_reads(tmp_path: Path) -> None:
    [pod] = [
        pod for component, pod in pods(documents(template("default"))) if component == "cluster"
    ]
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
    ],
)
def test_values_that_cannot_be_meant_are_refused(wrong: str) -> None:
    with pytest.raises(AssertionError, match=r"schema|cephqos:"):
        template("default", "--set", wrong)
