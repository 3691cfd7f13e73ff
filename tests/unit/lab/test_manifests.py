"""The chart and what it renders: valid for Kubernetes and KEDA, hardened, true to settings, pools and routes."""

from __future__ import annotations

import importlib
import io
import json
import re
import shlex
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jsonschema
import pytest

from brainq import __version__
from brainq.adapters.celery.names import POOL_QUEUES
from brainq.contracts.fleet import FleetScale
from brainq.gateway.edge.access import PUBLIC_PATHS, VERBS
from brainq.runtime.settings.deployment import ENV_PREFIX, Settings
from ops.kubernetes.helm import find_helm, helm_in
from ops.kubernetes.render import CHART, MANIFESTS, VALUES, render, template

yaml: Any = importlib.import_module("yaml")  # these have no types
kubernetes: Any = importlib.import_module("kubernetes_validate")

ROOT = Path(__file__).parents[3]
RELEASES = ("1.27", "1.37")
NAMES = sorted(path.stem for path in VALUES.glob("*.yaml"))
KEDA = json.loads((MANIFESTS / "schemas" / "keda-v2.20.json").read_text())
HELM = find_helm() or ""
needs_helm = pytest.mark.needs(bool(HELM), "what `make helm` installs")
Manifest = dict[str, Any]


def committed(name: str) -> list[Manifest]:
    return [one for one in yaml.safe_load_all((MANIFESTS / f"{name}.yaml").read_text()) if one]


def of_kind(name: str, *kinds: str) -> dict[str, Manifest]:
    return {one["metadata"]["name"]: one for one in committed(name) if one["kind"] in kinds}


def pods(name: str) -> Iterator[tuple[str, Manifest, Manifest]]:
    """Each workload's name, its pod's spec and its one container."""
    for workload, one in of_kind(name, "Deployment", "StatefulSet").items():
        spec = one["spec"]["template"]["spec"]
        (container,) = spec["containers"]
        yield workload, spec, container


def check(manifest: Manifest, release: str) -> None:
    if manifest["apiVersion"].startswith("keda.sh/"):
        jsonschema.Draft202012Validator(KEDA).validate(manifest)
    else:
        kubernetes.validate(manifest, release, strict=True)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("release", RELEASES)
def test_every_manifest_is_valid(name: str, release: str) -> None:
    found = committed(name)
    assert len(found) > 15
    for manifest in found:
        check(manifest, release)
        assert manifest["metadata"]["namespace"] == "brainq"


def test_what_is_wrong_is_not_valid() -> None:
    (deployment, *_), (scaled, *_) = of_kind("keda", "Deployment").values(), of_kind("keda", "ScaledObject").values()
    for manifest, path, key, value in (
        (deployment, ("spec", "template", "spec"), "terminationGracePeriod", 60),
        (deployment, ("spec",), "replicas", "two"),
        (scaled, ("spec", "triggers", 0, "metadata"), "targetValue", 1),
        (scaled, ("spec", "triggers", 0, "metadata"), "valueLocations", "wanted"),
        (scaled, ("spec",), "maxReplicas", 3),
    ):
        wrong = deepcopy(manifest)
        at: Any = wrong
        for part in path:
            at = at[part]
        at[key] = value
        with pytest.raises(jsonschema.ValidationError):
            check(wrong, RELEASES[-1])


@needs_helm
@pytest.mark.parametrize("name", NAMES)
def test_the_committed_manifests_are_what_the_chart_renders(name: str) -> None:
    rendered = render(HELM, VALUES / f"{name}.yaml")
    assert rendered == (MANIFESTS / f"{name}.yaml").read_text(), "run `make manifests`"


@needs_helm
@pytest.mark.parametrize(
    "settings",
    [
        ("brain.configMap=shop", "networkPolicy.enabled=false", "podDisruptionBudget.enabled=false"),
        (
            "secret.existing=",
            "secret.values.BRAINQ_REDIS_URL=redis://r:6379/0",
            "secret.values.BRAINQ_SQL_URL=sqlite://",
            "secret.values.FLOWER_BASIC_AUTH=me:x",
        ),
        ("data.existingClaim=shared", "image.pullSecrets={a,b}", "serviceAccount.create=false", "image.tag=mine"),
        ("env.BRAINQ_SCALE_MAX=40", "nodeSelector.disk=ssd", "podAnnotations.team=a", "redis.bundled=true"),
        ("networkPolicy.gatewayFrom[0].podSelector.matchLabels.app=web", "gateway.ingress.tlsSecret="),
    ],
)
def test_other_values_render_to_what_is_valid(settings: tuple[str, ...]) -> None:
    done = template(HELM, VALUES / "keda.yaml", *settings)
    assert done.returncode == 0, done.stderr
    for manifest in yaml.safe_load_all(done.stdout):
        if manifest:
            check(manifest, RELEASES[-1])


@needs_helm
def test_a_build_is_a_release_whose_workers_say_its_name_and_are_scaled_by_it() -> None:
    done = template(HELM, VALUES / "keda.yaml", "build=1.5-rc", "pools.serial.minReplicas=0")
    assert done.returncode == 0, done.stderr
    found = [one for one in yaml.safe_load_all(done.stdout) if one]
    scaled = [one["spec"] for one in found if one["kind"] == "ScaledObject"]
    urls = [urlsplit(one["triggers"][0]["metadata"]["url"]) for one in scaled]
    assert [parse_qs(url.query)["build"] for url in urls] == [["1.5-rc"]] * len(POOL_QUEUES)
    for one in found:
        if one["kind"] == "Deployment":
            (container,) = one["spec"]["template"]["spec"]["containers"]
            assert {"name": "BRAINQ_BUILD", "value": "1.5-rc"} in container["env"]


@needs_helm
@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("pools.coordinator.replicas=0", "minimum"),
        ("pools.serial.thread=1", "thread"),
        ("podSecurityContext.runAsNonRoot=false", "runAsNonRoot"),
        ("brain.app=shop", "app"),
        ("secret.existing=", "secret.values.BRAINQ_REDIS_URL: set it, or name a Secret"),
        ("build=1.5 rc", "build"),
        ("gateway.ingress.host=", "name the host that the gateway is reached by"),
    ],
)
def test_wrong_values_are_refused_by_name(setting: str, said: str) -> None:
    done = template(HELM, VALUES / "keda.yaml", setting)
    assert done.returncode != 0
    assert said in done.stderr


def test_the_values_fit_their_schema() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    jsonschema.Draft7Validator(schema).validate(values)
    assert set(values) == set(schema["properties"]) - {"global"}, "each value has its place in the schema"


@pytest.mark.parametrize("name", NAMES)
def test_no_pod_runs_as_root_or_writes_to_its_root(name: str) -> None:
    found = list(pods(name))
    assert len(found) >= 5
    for workload, spec, container in found:
        assert spec["securityContext"]["runAsNonRoot"] is True, workload
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, workload
        assert spec["automountServiceAccountToken"] is False, workload
        security = container["securityContext"]
        assert (security["readOnlyRootFilesystem"], security["allowPrivilegeEscalation"]) == (True, False), workload
        assert security["capabilities"] == {"drop": ["ALL"]}, workload
        assert container["resources"]["limits"]["memory"], workload
        assert container["readinessProbe"], workload
        assert re.fullmatch(r"[a-z]+:\d+(\.\d+)*", container["image"]), workload
    user = re.search(r"--uid (\d+)", (ROOT / "ops/docker/Dockerfile").read_text())
    assert user is not None
    gateway = {workload: spec for workload, spec, _ in pods(name)}["brainq-gateway"]
    assert gateway["securityContext"]["runAsUser"] == int(user[1])


@pytest.mark.parametrize("name", NAMES)
def test_the_pools_are_those_of_the_procfile_and_drain(name: str) -> None:
    lines = dict(line.split(": ", 1) for line in (ROOT / "Procfile").read_text().splitlines() if line)
    values = yaml.safe_load((CHART / "values.yaml").read_text())["pools"]
    found = {workload: (spec, container) for workload, spec, container in pods(name)}
    assert list(values) == list(POOL_QUEUES)
    for pool in POOL_QUEUES:
        spec, container = found[f"brainq-{pool}"]
        assert container["command"] == shlex.split(lines[pool])
        env = {one["name"]: one.get("value") for one in container["env"]}
        ready = ["test", "-s", env["BRAINQ_READY_FILE"]]
        assert container["readinessProbe"]["exec"]["command"] == ready
        assert container["startupProbe"]["exec"]["command"] == ready
        assert "livenessProbe" not in container
        assert container["lifecycle"]["preStop"]["exec"]["command"] == ["rm", "-f", env["BRAINQ_READY_FILE"]]
        assert spec["terminationGracePeriodSeconds"] == values[pool]["graceSeconds"] >= 60
        assert spec["shareProcessNamespace"] is True
    assert values["serial"]["graceSeconds"] >= 150, "as docker-compose.yml gives it"


@pytest.mark.parametrize("name", NAMES)
def test_the_gateway_leaves_the_balancer_before_it_stops(name: str) -> None:
    spec, container = {workload: (spec, container) for workload, spec, container in pods(name)}["brainq-gateway"]
    assert container["command"] == ["brainq", "serve", "--host", "0.0.0.0"]
    paths = {container[probe]["httpGet"]["path"] for probe in ("readinessProbe", "livenessProbe")}
    assert paths == {"/readyz", "/healthz"} <= PUBLIC_PATHS
    drains_s = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert spec["terminationGracePeriodSeconds"] > drains_s + Settings().http_grace_s
    assert container["ports"][0]["containerPort"] == Settings().http_port


@pytest.mark.parametrize("name", NAMES)
def test_selectors_find_what_they_are_for(name: str) -> None:
    labels = {
        workload: one["spec"]["template"]["metadata"]["labels"]
        for workload, one in of_kind(name, "Deployment", "StatefulSet").items()
    }
    selectors = {
        f"{one['kind']} {one['metadata']['name']}": one["spec"].get("podSelector") or one["spec"]["selector"]
        for one in committed(name)
        if one["kind"] in ("Service", "PodDisruptionBudget", "NetworkPolicy")
    }
    for what, selector in selectors.items():
        wanted = selector.get("matchLabels", selector)
        assert [each for each, has in labels.items() if wanted.items() <= has.items()] == [what.split()[1]], what
    guarded = {what.split()[1] for what in selectors if what.startswith("NetworkPolicy")}
    assert guarded == set(labels), "every pod has a policy"
    budgets = {what.split()[1] for what in selectors if what.startswith("PodDisruptionBudget")}
    assert budgets == {f"brainq-{each}" for each in (*POOL_QUEUES, "gateway")}


def test_keda_asks_the_route_and_gives_each_pool_what_it_wants() -> None:
    deployments, scaled = of_kind("keda", "Deployment"), of_kind("keda", "ScaledObject")
    targets = {one["spec"]["scaleTargetRef"]["name"] for one in scaled.values()}
    assert targets == set(scaled) == {f"brainq-{each}" for each in POOL_QUEUES}
    service = of_kind("keda", "Service")["brainq-gateway"]
    for name, one in scaled.items():
        assert "replicas" not in deployments[name]["spec"], "a rollout would set them back"
        (trigger,) = one["spec"]["triggers"]
        url = urlsplit(trigger["metadata"]["url"])
        asked = {key: value[0] for key, value in parse_qs(url.query).items()}
        assert VERBS[f"GET {url.path}"] == "metrics"
        assert url.hostname == f"{service['metadata']['name']}.{service['metadata']['namespace']}"
        assert url.port == service["spec"]["ports"][0]["port"]
        assert f"brainq-{asked['pool']}" == name
        least, most = one["spec"]["minReplicaCount"], one["spec"]["maxReplicaCount"]
        assert (int(asked["min"]), int(asked["max"])) == (least, most)
        assert trigger["metadata"]["valueLocation"] in FleetScale.model_fields
        assert (trigger["metricType"], trigger["metadata"]["targetValue"]) == ("AverageValue", "1")
        assert trigger["authenticationRef"]["name"] in of_kind("keda", "TriggerAuthentication")
    assert scaled["brainq-coordinator"]["spec"]["minReplicaCount"] >= 1


def test_every_variable_is_a_setting_and_no_secret_is_written_down() -> None:
    for path in (*CHART.rglob("*.*"), *VALUES.glob("*"), *MANIFESTS.glob("*.yaml")):
        text = path.read_text()
        named = set(re.findall(ENV_PREFIX + r"([A-Z][A-Z_]*[A-Z])\b", text)) - {"CONCURRENCY"}
        known = {*Settings.model_fields, "ready_file", *(f"concurrency__{pool}" for pool in POOL_QUEUES)}
        assert {one.lower() for one in named} <= known, path
    for name in NAMES:
        assert not of_kind(name, "Secret")
        for _, _, container in pods(name):
            for one in container.get("env", []):
                assert "PASSWORD" not in one["name"] or "valueFrom" in one, one


def test_the_chart_is_of_this_release_and_has_redis_settings_of_its_own_page() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)
    assert (CHART / "files/redis.conf").read_text() == (ROOT / "ops/redis/redis.conf").read_text()


def test_helm_is_taken_out_of_the_package() -> None:
    layer, archive, wheel = io.BytesIO(), io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(layer, "w") as inner:
        inner.writestr("helm/helm", b"the program")
    with tarfile.open(fileobj=archive, mode="w:gz") as package:
        entry = tarfile.TarInfo("package/lib/layer.zip")
        entry.size = len(layer.getvalue())
        package.addfile(entry, io.BytesIO(layer.getvalue()))
    with zipfile.ZipFile(wheel, "w") as outer:
        outer.writestr("aws_cdk/layer/_jsii/layer@1.jsii.tgz", archive.getvalue())
    assert helm_in(wheel.getvalue()) == b"the program"


@needs_helm
def test_helm_finds_nothing_wrong_with_the_chart() -> None:
    command = [HELM, "lint", "--strict", str(CHART), "-f", str(VALUES / "keda.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
