"""The pyinfra deploy of ``./dev bench peers``: one stock operation an item of :mod:`tests.bench.wanted`.

pyinfra runs this file. BENCH_WANTED names the directory with the files' contents, and the toolkit's version.
"""

import os

from pyinfra.context import host
from pyinfra.facts.server import Command
from pyinfra.operations import apt, files, server, systemd

from tests.bench.wanted import Directory, File, Group, Held, Item, Member, Output, Packages, Service, wanted

CONTENTS, VERSION = os.environ["BENCH_WANTED"].split(":")


def operate(item: Item) -> None:
    """Call the operation, or read the fact, that is closest to the item."""
    match item:
        case File(path, mode):
            files.put(src=CONTENTS + path, dest=path, user="root", group="root", mode=mode)
        case Directory(path):
            files.directory(path=path, user="root", group="root", mode="755")
        case Packages():
            apt.packages(packages=item.words(), no_recommends=True)
        case Held(name):
            # pyinfra has no operation for this.
            if name not in host.get_fact(Command, "apt-mark showhold").split():
                server.shell(commands=[f"apt-mark hold {name}"])
        case Service(name):
            systemd.service(service=name, running=True, enabled=True)
        case Group(name):
            server.group(group=name)
        case Member(user, group):
            server.user(user=user, groups=[group], append=True, ensure_home=False)
        case Output(command):
            host.get_fact(Command, command)


for each in wanted(VERSION):
    operate(each)
