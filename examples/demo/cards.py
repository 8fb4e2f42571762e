"""The fourth story: Radicale, a CardDAV server, and preconditions that make a resend harmless."""

import base64
import http.client
import json
import signal
import socket
from pathlib import Path
from typing import Any, Final

from examples.demo.scene import CARDS, INSTALLATION, ORG, Scene, publish, short_pack
from examples.demo.stage import free_port, write_toml
from examples.demo.stories import events

from doonce.app.installing import Installed

USER, PASSWORD = "ann", "secret"
SECRET: Final = f"{USER}:{PASSWORD}"
BOOK: Final = "ann/book"
MAKE_BOOK: Final = b"""<?xml version="1.0"?><mkcol xmlns="DAV:" xmlns:C="urn:ietf:params:xml:ns:carddav"><set><prop>
<resourcetype><collection/><C:addressbook/></resourcetype></prop></set></mkcol>"""
LISTEN_SECONDS: Final = 30.0


async def a_server_that_nobody_here_wrote(scene: Scene) -> None:
    """Create under If-None-Match, update under If-Match, each with a worker that is killed on the way."""
    stage = scene.stage
    stage.act(
        "4  A server that nobody here wrote",
        "Radicale keeps cards. A create says If-None-Match: *, an update says If-Match: so a resend is harmless, and "
        "happens by itself.",
    )
    storage, installed = await start_radicale(scene)
    view = await scene.ended(await create(scene, installed, "ann", "Ann"))
    stage.say(f"a card is created: {view.reason}")
    command = await killed(scene, lambda: create(scene, installed, "bob", "Bob"))
    result = (await scene.ended(command)).result
    timeline = await scene.tell(command)
    stage.check("the first call's outcome was lost, and it went on by itself", resent(events(timeline)), True)
    stage.check("two cards, each once", names(storage), ["Ann", "Bob"])

    etag = etag_of(bytes(result))
    await scene.link(installed, "carddav", "person-bob", "bob.vcf")
    command = await killed(scene, lambda: update(scene, installed, etag, "bob", "Robert"))
    await scene.ended(command)
    timeline = await scene.tell(command)
    stage.check("the update went on by itself, too", resent(events(timeline)), True)
    stage.check("each card is there once, with the last content", names(storage), ["Ann", "Robert"])


async def start_radicale(scene: Scene) -> tuple[Path, Installed]:
    """The server, an empty address book, and a published binding for it."""
    stage = scene.stage
    port, storage = free_port(), stage.folder / "radicale"
    users = stage.folder / "users"
    users.write_text(f"{SECRET}\n")
    config = stage.folder / "radicale.config"
    config.write_text(
        f"[server]\nhosts = 127.0.0.1:{port}\n"
        f"[auth]\ntype = htpasswd\nhtpasswd_filename = {users}\nhtpasswd_encryption = plain\ndelay = 0\n"
        f"[storage]\nfilesystem_folder = {storage}\n"
    )
    process, _ = stage.start("radicale", "-m", "radicale", "--config", str(config), line=False)
    await stage.until("Radicale listens", lambda: listens(port), LISTEN_SECONDS)
    make_book(port)
    binding = write_toml(
        stage.folder / "cards.toml",
        {
            "format": "doonce.binding/1",
            "org": ORG,
            "installation": INSTALLATION,
            "capability": CARDS,
            "pack": "carddav@1.0.0",
            "origin": f"http://127.0.0.1:{port}",
            "principal": "ann",
            "operations": ["card.create", "card.update"],
            "parameters": {"collection": BOOK},
            "policies": {"retry": {"base": "100ms", "cap": "1s"}},
        },
    )
    pack = short_pack(stage, "carddav")
    installed = await publish(scene.engine, scene.settings, pack, binding, SECRET)
    stage.say(f"Radicale runs (pid {process.pid}), published {installed.view.document.pack} for it")
    return storage, installed


async def create(scene: Scene, installed: Installed, uid: str, name: str) -> str:
    """Hand a new card over."""
    payload = {"uid": uid, "card": card(uid, name)}
    return await scene.hand_over(installed, "card.create", f"person-{uid}", payload)


async def update(scene: Scene, installed: Installed, etag: str, uid: str, name: str) -> str:
    """Hand a card's next version over."""
    payload = {"etag": etag, "card": card(uid, name)}
    return await scene.hand_over(installed, "card.update", f"person-{uid}", payload)


async def killed(scene: Scene, hand_over: Any) -> str:
    """Hand over to a service that is killed once the server has answered, and start another one."""
    _, armed = scene.armed("call.answered", "kill")
    scene.restart_service(**armed)
    command: str = await hand_over()
    status = await scene.stage.died(scene.service)
    scene.stage.check("the worker was killed between mark and answer", status, -signal.SIGKILL)
    scene.service = scene.start_service()
    return command


def resent(happened: list[str]) -> bool:
    """Two attempts or more, the first of them replay-safe, and no operator."""
    return happened.count("attempt dispatched") > 1 and "attempt REPLAY_SAFE_RETRY" in happened


def card(uid: str, name: str) -> str:
    """One vCard."""
    return f"BEGIN:VCARD\r\nVERSION:3.0\r\nUID:{uid}\r\nFN:{name}\r\nN:{name};;;;\r\nEND:VCARD\r\n"


def names(storage: Path) -> list[str]:
    """Who is in the server's own files."""
    found = []
    for file in sorted((storage / "collection-root" / "ann" / "book").glob("*.vcf")):
        lines = file.read_text().splitlines()
        found += [line.partition(":")[2] for line in lines if line.startswith("FN")]
    return sorted(found)


def etag_of(result: bytes) -> str:
    """The version that a result names."""
    return str(json.loads(result)["etag"])


def listens(port: int) -> bool:
    """Whether something accepts connections."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=0.2).close()
    except OSError:
        return False
    return True


def make_book(port: int) -> None:
    """Make the empty address book, as a user's own client would."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    token = base64.b64encode(SECRET.encode()).decode()
    headers = {"Authorization": f"Basic {token}", "Content-Type": "application/xml"}
    connection.request("MKCOL", f"/{BOOK}/", body=MAKE_BOOK, headers=headers)
    status = connection.getresponse().status
    connection.close()
    if status != 201:
        raise RuntimeError(f"the address book could not be made: {status}")
