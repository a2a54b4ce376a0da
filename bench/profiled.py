"""`python -m bench.profiled LOAD`: runs one load on a cluster under cProfile.

Owns: profiling the cluster's process, printing the profile.  Never: measures a figure: a profiled
cluster is several times slower, so only the proportions count.

The cluster runs in the main thread of a separate process (`--serve FILE OUT`), as cProfile sees one
thread.  On SIGTERM that process writes the profile and ends.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Final

import yaml

from bench.processes import END_S, client, end_on_sigterm, free_ports, spawn
from bench.wire import brokers_named
from kcluster.config.topology.model import Topology
from kcluster.handle.cluster import Cluster

BROKERS: Final = 3
ROWS: Final = 40
LOADS: Final[dict[str, tuple[str, ...]]] = {
    "produce": ("load", "--figures", "produce", "--mb", "200"),
    "consume": ("load", "--figures", "consume", "--mb", "100"),
    "ack": ("load", "--figures", "ack", "--acks", "5000"),
    "requests": ("requests", "--count", "10000"),
    "small_produce": ("appends", "--seconds", "4"),
    "idle": (),
}
"""Load -> the client's module and its arguments."""


def serve(topology: str, out: str) -> None:
    """Run a cluster in this thread until SIGTERM; then write the profile to `out`."""
    cluster = Cluster(Topology.load(topology))
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())

    def close() -> None:
        while not stop.wait(0.1):
            pass
        cluster.close()

    closing = threading.Thread(target=close)
    profile = cProfile.Profile()
    closing.start()
    profile.enable()
    cluster.run()
    profile.disable()
    closing.join()
    profile.dump_stats(out)


def profile_load(name: str, folder: Path) -> pstats.Stats:
    """Run a load on a profiled cluster."""
    port = free_ports(BROKERS)
    brokers = [{"id": at + 1, "port": port + at} for at in range(BROKERS)]
    topology, out = folder / "topology.yaml", folder / "profile"
    topology.write_text(yaml.safe_dump({"brokers": brokers}))
    module, *arguments = LOADS[name] or ("",)
    command = [sys.executable, "-P", "-m", "bench.profiled", "--serve", str(topology), str(out)]
    process = spawn(command, folder / "log")
    try:
        while brokers_named(("127.0.0.1", port)) < BROKERS and process.poll() is None:
            time.sleep(0.01)
        if module:
            print(client(module, f"127.0.0.1:{port}", *arguments, timeout_s=300))
        else:
            time.sleep(10)
        process.terminate()
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        print((folder / "log").read_text())
        raise
    finally:
        if process.poll() is None:
            process.kill()
    return pstats.Stats(str(out))


def main() -> None:
    parser = argparse.ArgumentParser("python -m bench.profiled", description="where time goes")
    parser.add_argument("load", nargs="?", choices=LOADS)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--sort", default="tottime", choices=("tottime", "cumtime"))
    parser.add_argument("--serve", nargs=2, metavar=("FILE", "OUT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(*options.serve)
        return
    if options.load is None:
        parser.error(f"name a load: {', '.join(LOADS)}")
    end_on_sigterm()
    with tempfile.TemporaryDirectory(prefix="kcb") as folder:
        profile_load(options.load, Path(folder)).sort_stats(options.sort).print_stats(options.rows)


if __name__ == "__main__":
    main()
