"""`python -m examples.demo [--keep]`: run the stories, and end with `demo: ok` or with what did not hold."""

import asyncio
import contextlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

from examples.demo import cards, deliveries, stories
from examples.demo.scene import TOKEN, Scene, set_up
from examples.demo.stage import ROOT, WIDTH, CheckFailed, Stage
from rich.console import Console
from simulators.launch import running


async def play(stage: Stage, simulator_started: contextlib.ExitStack) -> Scene:
    """Set the stage and tell the stories."""
    ledger = stage.folder / "ledger.jsonl"
    simulator = simulator_started.enter_context(running("simulators.hubspot", ledger, "--token", TOKEN))
    stage.say(
        f"the provider's simulator runs (pid {simulator.pid}) at {simulator.url}, with a ledger of its own"
    )
    scene = await set_up(stage, simulator)
    await stories.once(scene)
    await stories.nobody_knows(scene)
    await stories.too_late(scene)
    await cards.a_server_that_nobody_here_wrote(scene)
    await deliveries.deliveries(scene)
    return scene


def main(*, keep: bool) -> int:
    """Run the demo; 0 when everything held."""
    var = ROOT / "var"
    var.mkdir(exist_ok=True)
    stage = Stage(Path(tempfile.mkdtemp(prefix="demo-", dir=var)), Console(width=WIDTH, highlight=False))
    simulator = contextlib.ExitStack()
    scene: Scene | None = None
    try:
        scene = asyncio.run(play(stage, simulator))
    except CheckFailed as failed:
        stage.out.print(f"[bold red]✗ {failed}[/bold red]", markup=True, soft_wrap=True)
        stage.out.print(f"the logs are in {stage.folder}")
    finally:
        if not keep or scene is None:
            stage.end_all()
            simulator.close()
    if scene is None:
        print("demo: failed")
        return 1
    stage.out.print()
    if keep:
        leave(stage, scene)
    else:
        shutil.rmtree(stage.folder)
    print("demo: ok", flush=True)
    if keep:
        os._exit(0)  # an orderly end of this process would end the others with it
    return 0


def leave(stage: Stage, scene: Scene) -> None:
    """Say what still runs, where, and how to end it."""
    pids = " ".join(str(pid) for pid in [*stage.pids(), scene.simulator.pid])
    stage.out.print(
        f"still running in {stage.folder}: the service at {scene.url}, the simulator at {scene.simulator.url}"
    )
    stage.out.print(f"look around:  doonce status --config {scene.config}")
    stage.out.print(f"end it:       kill {pids}")


if __name__ == "__main__":
    raise SystemExit(main(keep="--keep" in sys.argv[1:]))
