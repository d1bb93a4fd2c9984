"""./dev bench: which benchmark, by its first word; each is imported alone, because gevent patches a whole process."""

import importlib
import sys

from tests.lab.host import LabError

_BENCHMARKS = ("startup", "peers", "page", "fleet")

if __name__ == "__main__":
    words = sys.argv[1:]
    chosen = words.pop(0) if words[:1] and words[0] in _BENCHMARKS else "loopback"
    try:
        sys.exit(importlib.import_module(f"tests.bench.{chosen}").main(words))
    except LabError as e:
        sys.exit(f"bench: {e}")
