"""The files under ops/, the Procfile and the compose file, checked as far as that works without Docker."""

from __future__ import annotations

import importlib
import importlib.util
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from celery.bin.worker import worker as worker_command
from flower.command import apply_options
from tornado.options import options as flower_options

from brainq import __version__
from brainq.runtime.settings.deployment import ENV_PREFIX, Settings

ROOT = Path(__file__).parents[2]
POOLS = {"coordinator", "parallel", "serial", "finalizer"}
NODES = [f"redis-{number}" for number in range(1, 7)]
OF_WORKERS = {"ready_file", "pools"}  # what a worker process reads before, or beside, its settings
yaml: Any = importlib.import_module("yaml")  # it has no types


def procfile() -> dict[str, str]:
    lines = (ROOT / "Procfile").read_text().splitlines()
    return dict(line.split(": ", 1) for line in lines if line)  # pyright: ignore[reportReturnType]


def compose() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text())


def commands() -> Iterator[tuple[str, list[str]]]:
    for name, command in procfile().items():
        yield f"Procfile {name}", shlex.split(command)
    for name, service in compose()["services"].items():
        command = str(service.get("command", ""))
        if command.startswith(("celery", "brainq")):
            yield f"compose {name}", shlex.split(command)

    for line in (ROOT / "README.md").read_text().splitlines():
        if line.startswith("celery -A "):
            words = shlex.split(line, comments=True)
            yield f"README {words[2].removeprefix('brainq.workers.')}", words


COMMANDS = dict(commands())


def test_every_pool_and_flower_is_run_by_both_files_and_each_pool_stands_in_the_readme() -> None:
    assert {where for where in COMMANDS if where.startswith("README")} == {f"README {pool}" for pool in {*POOLS, "all"}}
    assert set(procfile()) == POOLS | {"flower", "gateway"}
    of_profiles = {"watch": {"prometheus", "grafana"}, "cluster": {*NODES, "cluster"}}
    services = compose()["services"]
    assert set(services) == POOLS | {"flower", "gateway", "redis", "postgres"}.union(*of_profiles.values())
    for profile, names in of_profiles.items():
        assert {name for name, service in services.items() if service.get("profiles") == [profile]} == names


WORKERS = [where for where in COMMANDS if not where.endswith(("flower", "gateway"))]


@pytest.mark.parametrize("where", WORKERS)
def test_a_command_names_an_entry_point_that_exists(where: str) -> None:
    program, option, module, *_ = COMMANDS[where]
    assert (program, option) == ("celery", "-A")
    assert module.removeprefix("brainq.workers.") in {*POOLS, "all"}
    assert importlib.util.find_spec(module) is not None, f"{module} cannot be imported"


@pytest.mark.parametrize("where", WORKERS)
def test_a_worker_command_is_one_celery_accepts_with_the_pools_concurrency(where: str) -> None:
    module, subcommand, *arguments = COMMANDS[where][2:]
    pool = module.removeprefix("brainq.workers.")
    assert subcommand == "worker"
    parser = worker_command.make_parser(click.Context(worker_command))
    parsed, rest, _ = parser.parse_args(list(arguments))
    assert rest == []
    assert "pool" not in parsed  # the app has its own
    if pool == "all":
        assert "concurrency" not in parsed  # each of its pools has the threads of its own setting
    else:
        assert int(parsed["concurrency"]) == getattr(Settings().concurrency, pool)
    assert parsed["hostname"] == f"{pool}@%h"
    assert "without_heartbeat" not in parsed  # Flower takes a worker without heartbeats for dead


def test_flower_listens_on_loopback_or_asks_for_a_login() -> None:
    assert COMMANDS["Procfile flower"] == ["brainq", "flower"]
    assert COMMANDS["compose flower"] == ["brainq", "flower", "--address", "0.0.0.0"]
    assert compose()["services"]["flower"]["environment"]["FLOWER_BASIC_AUTH"].startswith("${FLOWER_BASIC_AUTH:?")


def test_the_gateway_is_reached_from_this_machine_alone_and_is_well_when_redis_and_sql_are() -> None:
    assert COMMANDS["Procfile gateway"] == ["brainq", "serve"]
    assert COMMANDS["compose gateway"] == ["brainq", "serve", "--host", "0.0.0.0"]
    assert f"127.0.0.1:{Settings().http_port}/readyz" in str(compose()["services"]["gateway"]["healthcheck"])
    assert importlib.util.find_spec("brainq.workers.gateway") is not None
    assert "from brainq.workers.gateway import main" in (ROOT / "workers" / "gateway.py").read_text()


def test_the_repositorys_short_names_are_the_apps_of_the_package() -> None:
    for pool in POOLS:
        short = (ROOT / "workers" / f"{pool}.py").read_text()
        assert f"from brainq.workers.{pool} import app" in short


def test_compose_and_the_procfile_run_the_same_workers() -> None:
    for pool in POOLS:
        assert COMMANDS[f"compose {pool}"] == COMMANDS[f"Procfile {pool}"]


def test_every_variable_named_in_a_deployment_file_is_a_setting() -> None:
    texts = [
        (ROOT / name).read_text() for name in ("docker-compose.yml", "docs/operate/deploy.md", "ops/docker/Dockerfile")
    ]
    named = {name for text in texts for name in re.findall(ENV_PREFIX + r"([A-Z][A-Z_]*)", text)}
    assert named
    assert {name.lower().partition("__")[0] for name in named} <= {*Settings.model_fields, *OF_WORKERS}


def test_every_service_has_a_health_check_and_a_pinned_image() -> None:
    for name, service in compose()["services"].items():
        assert "healthcheck" in service or service["restart"] == "no", name
        image = service.get("image")
        assert re.fullmatch(r"[a-z/]+:v?\d+(\.\d+)*", image), name
        assert not image.startswith("brainq") or image == f"brainq:{__version__}"
        assert image.startswith("brainq") == ("build" in service)


def test_no_services_log_grows_for_ever_and_redis_memory_can_be_bounded() -> None:
    for name, service in compose()["services"].items():
        assert {"max-size", "max-file"} <= service["logging"]["options"].keys(), name
    assert "--maxmemory ${REDIS_MAXMEMORY:-0}" in compose()["services"]["redis"]["command"]


def test_the_nodes_of_the_cluster_keep_their_data_apart_and_are_joined_before_workers_start() -> None:
    services = compose()["services"]
    for name in NODES:
        assert f"{name}-data:/data" in services[name]["volumes"]
        assert services[name]["command"] == services["redis"]["command"] + " --cluster-enabled yes"
    assert set(services["cluster"]["depends_on"]) == set(NODES)
    assert services["cluster"]["command"].split()[2:] == [f"{name}:6379" for name in NODES]
    for name in POOLS | {"flower", "gateway"}:
        assert services[name]["depends_on"]["cluster"] == {
            "condition": "service_completed_successfully",
            "required": False,
        }


def test_every_worker_has_the_users_brain_where_it_is_looked_for() -> None:
    dockerfile = (ROOT / "ops/docker/Dockerfile").read_text()
    assert "WORKDIR /app" in dockerfile
    assert "PYTHONPATH=/app" in dockerfile
    for name in POOLS | {"flower", "gateway"}:
        mounts = compose()["services"][name]["volumes"]
        assert mounts == ["${BRAIN_DIR:?the directory of your brain}:/app:ro", "brain-data:/data"], name


def pins(lock: str) -> dict[str, str]:
    """Each package of a lock file with its version, and the marker that says where it is installed."""
    return dict(re.findall(r"^([a-z0-9._-]+)==([^ \\]+)", (ROOT / lock).read_text(), re.MULTILINE))


def test_the_image_has_the_versions_that_the_tests_run_with() -> None:
    image, tested = pins("ops/docker/requirements.lock"), pins("requirements.lock")
    assert {name: version for name, version in image.items() if tested[name] != version} == {}
    assert {"celery", "psycopg", "openai", "fastapi", "mcp", "opentelemetry-sdk", "hatchling"} <= set(image)


@pytest.mark.parametrize("file", ["Makefile", "ops/docker/Dockerfile", "lab/compare/install.py"])
def test_a_lock_is_installed_as_it_stands(file: str) -> None:
    """A resolver may pick a release that is newer than the lock for `name[extra]`, whose hash is not there."""
    words = (ROOT / file).read_text().replace('", "', " ")
    assert words.count("--require-hashes") == words.count("--no-deps --require-hashes") > 0


def test_compose_holds_no_password_in_a_url_and_no_empty_key() -> None:
    for name in POOLS | {"flower", "gateway"}:
        service = compose()["services"][name]
        environment = service["environment"]
        assert [word for word in environment.values() if word and "://" in word and "$" in word] == [
            "${STATE_URL:-redis://redis:6379/0}"
        ]
        assert [key for key in environment if key.endswith("_API_KEY") and environment[key] is not None] == []
        assert service["init"] is True
    text = (ROOT / "docker-compose.yml").read_text()
    assert "Docker Compose 2.24" in text
    assert "Docker Compose 2.24" in (ROOT / "docs/operate/deploy.md").read_text()


def test_a_pool_is_healthy_while_its_ready_file_is_there() -> None:
    for name in POOLS:
        service = compose()["services"][name]
        path = service["environment"]["BRAINQ_READY_FILE"]
        assert service["healthcheck"]["test"] == ["CMD", "test", "-s", path]


def test_what_people_look_at_is_published_on_loopback_and_nothing_else() -> None:
    ports = {name: service["ports"] for name, service in compose()["services"].items() if "ports" in service}
    assert ports == {
        "flower": ["127.0.0.1:5555:5555"],
        "gateway": ["127.0.0.1:8321:8321"],
        "prometheus": ["127.0.0.1:9090:9090"],
        "grafana": ["127.0.0.1:3000:3000"],
    }


def test_every_file_compose_and_the_dockerfile_name_is_there() -> None:
    services = compose()["services"]
    mounts = [str(mount).split(":")[0] for service in services.values() for mount in service.get("volumes", [])]
    dockerfile = services["coordinator"]["build"]["dockerfile"]
    copied = re.findall(r"^COPY (.+) \S+$", (ROOT / dockerfile).read_text(), re.MULTILINE)
    named = [mount for mount in mounts if mount.startswith("./")] + [
        name for line in copied for name in line.split() if name not in ("README.md", "LICENSE")
    ]
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_flower_accepts_its_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    saved = {name: option._value for name, option in flower_options._options.items()}
    try:
        apply_options("flower", [f"--conf={ROOT / 'brainq/workers/flowerconfig.py'}"])
        assert (flower_options.address, flower_options.port) == ("127.0.0.1", 5555)
        assert flower_options.read_only is True
        assert flower_options.persistent is False
        assert flower_options.max_tasks == 10_000
        assert flower_options.purge_offline_workers == 300
    finally:
        for name, value in saved.items():
            flower_options._options[name]._value = value


def test_every_flower_setting_in_the_file_is_one_flower_knows() -> None:
    text = (ROOT / "brainq/workers/flowerconfig.py").read_text()
    names = re.findall(r"^(\w+) = ", text, re.MULTILINE)
    assert len(names) >= 8
    assert [name for name in names if name not in flower_options] == []
