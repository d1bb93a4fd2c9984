"""Patch Python for gevent: import this module before all that uses sockets or threads."""

from importlib import metadata

from gevent import monkey

# gevent and pyinfra look for plugins about 30 times; each time, the files of every installed package would be read.
metadata.entry_points = metadata.entry_points().select
monkey.patch_all()
