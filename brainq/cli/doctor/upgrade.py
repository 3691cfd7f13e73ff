"""The checks of `brainq doctor --before-upgrade`: obstacles to this build, and the order of the upgrade.

They migrate and change nothing. Only turns that are in Redis are checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from brainq.adapters.redis.builds import RedisBuilds
from brainq.adapters.redis.connection import make_client
from brainq.adapters.redis.keys import Keys
from brainq.adapters.sql.engine import make_engine
from brainq.adapters.sql.migrations.upgrade import HEAD, revision, why_not_upgradable
from brainq.app.devserver.redis_server import known_redis
from brainq.app.wiring.preflight import Check, check_redis, fail, ok, warn
from brainq.cli.output import counted
from brainq.contracts.build import FORMATS_READ, STATE_FORMAT, Build, BuildTurn, BuildWorker, WorkerBuild
from brainq.engine.brain.brains import load_brains
from brainq.engine.brain.declared import worker_build
from brainq.errors import BrainqError, SetupError
from brainq.fleet.builds import MAX_TURNS, versions_of
from brainq.runtime.settings.deployment import Settings

ORDER = (
    "run brainq db upgrade; replace the workers one by one (coordinator, parallel, serial, finalizer); then "
    "replace gateways and Flower, and producers last"
)


def check_upgrade(settings: Settings) -> Iterator[Check]:
    """Yield each obstacle in every cell, and finally the order of the upgrade."""
    try:
        here = worker_build(load_brains(settings.app), settings.build)
    except BrainqError as wrong:
        yield fail("brain", str(wrong), "name the brain of the new build with -A or BRAINQ_APP")
        return
    cells = settings.all_cells()
    if len(cells) > 1:
        for cell in cells:
            for check in _check_deployment(settings.of_cell(cell), here):
                yield replace(check, name=f"{cell.name} {check.name}")
    else:
        yield from _check_deployment(settings, here)
    yield ok("order", ORDER)


def _check_deployment(settings: Settings, here: WorkerBuild) -> Iterator[Check]:
    try:
        url = known_redis(settings)
    except SetupError as wrong:
        yield fail("settings", "; ".join(str(wrong).splitlines()), "correct these environment variables")
        return
    answer = check_redis(url)
    if answer.level == "FAIL":
        yield answer
        return
    with make_client(url) as client:
        state = RedisBuilds(client, Keys(settings.key_prefix))
        workers, turns = state.workers(), state.unended(MAX_TURNS)
        known, released = state.known(), state.released()
    yield check_name(here, workers)
    yield check_formats(workers, turns)
    yield _check_sql(settings)
    builds = versions_of(workers, turns, known, released).builds
    yield from check_pins(here, [build for build in builds if build.name != here.name], turns)


def check_name(here: WorkerBuild, workers: Sequence[BuildWorker]) -> Check:
    """Check that the new build's name differs from the names of the running builds."""
    same = [worker for worker in workers if worker.build == here.name]
    digests = {brain.name: brain.digest for brain in here.brains}
    if any(digests.get(name) != digest for worker in same for name, (digest, _) in worker.brains.items()):
        remedy = "give each build its own name in BRAINQ_BUILD"
        return fail("build", f"workers of build {here.name!r} are already running, with different brains", remedy)
    if not here.is_distinct:
        return warn(
            "build", "this build has no name, so `brainq versions` cannot list it", "set BRAINQ_BUILD in all workers"
        )
    return ok("build", f"{here.name}" + (", with running workers" if same else ""))


def check_formats(workers: Sequence[BuildWorker], turns: Sequence[BuildTurn]) -> Check:
    """Check that this build can read the live turns, and that the running build could read this build's turns."""
    foreign = sorted({turn.format for turn in turns} - set(FORMATS_READ))
    if foreign:
        count = sum(turn.format in foreign for turn in turns)
        text = f"{counted(count, 'turn')} have state format {foreign[-1]}, which this build cannot read"
        return fail("state format", text, "use a build that can read it, or wait until these turns have ended")
    if any(STATE_FORMAT not in worker.formats for worker in workers):
        text = f"this build writes state format {STATE_FORMAT}, which the running workers cannot read"
        return warn(
            "state format",
            text,
            "make a backup first: turns that this build has claimed cannot return to the old build",
        )
    return ok("state format", f"{STATE_FORMAT}, which the running workers can read as well")


def check_pins(here: WorkerBuild, others: Sequence[Build], turns: Sequence[BuildTurn]) -> Iterator[Check]:
    """Yield a warning for turns that are pinned to a brain that this build does not have."""
    own = {brain.digest for brain in here.brains}
    for build in others:
        kept = [turn for turn in turns if turn.build == build.name and turn.is_pinned and turn.digest not in own]
        if kept:
            release = f"brainq versions release {build.name} --to {here.name}"
            remedy = f"keep its workers until `brainq versions` shows no turns for it, or run `{release}`"
            yield warn("pinned turns", f"{counted(len(kept), 'turn')} pinned to build {build.name}", remedy)


def _check_sql(settings: Settings) -> Check:
    try:
        engine = make_engine(settings.sql_address)
        try:
            found = revision(engine)
        finally:
            engine.dispose()
    except SetupError as wrong:
        return fail("sql revision", str(wrong), "correct BRAINQ_SQL_URL")
    except Exception as away:
        return fail(
            "sql revision",
            f"SQL does not answer ({type(away).__name__})",
            "start the database, or correct BRAINQ_SQL_URL",
        )
    if (problem := why_not_upgradable(found)) is not None:
        return fail("sql revision", f"the schema {problem[0]}", problem[1])
    if found == HEAD:
        return ok("sql revision", f"{HEAD} in both builds: no migration, and you can roll back")
    text = (
        f"{found or 'none'} becomes {HEAD}: running workers continue, but workers of the old build can no longer start"
    )
    return warn("sql revision", text, "back up SQL; stop supervisors of the old build from restarting workers")
