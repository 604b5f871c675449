"""Costs of an algorithm in Python: events per second, and the time of an acknowledgement.

Run it with `python python/bench/algorithm.py`. It takes about ten seconds.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import apus
from apus import parameters

SCENARIO = """\
duration = "{duration}"
topology = {{ kind = "star", hosts = 9, rate = "100Gbps", delay = "1us", buffer = "16MB" }}
algorithm = {{ name = "{name}" }}
[[workload]]
kind = "incast"
size = "64kB"
"""


class ConstantInPython(apus.OwnAlgorithm):
    """A constant window, as the built-in algorithm `constant`."""

    window = parameters.number(1, "window in packets", must="at least 1")

    def on_ack(self, event: apus.AckEvent) -> None:
        """Change nothing."""

    def on_loss(self, event: apus.LossEvent) -> None:
        """Change nothing."""

    def on_timeout(self, event: apus.TimeoutEvent) -> None:
        """Change nothing."""

    def allowance(self) -> float | apus.Allowance:
        """Return the window."""
        return self.window


class DelayInPython(ConstantInPython):
    """Additive increase below a target of the RTT, multiplicative decrease above it."""

    target = parameters.time("30us", "RTT to aim at")

    def start(self, flow: apus.FlowInfo) -> None:
        """Begin with one packet."""
        self.cwnd = 1.0
        self.decreased = 0.0

    def on_ack(self, event: apus.AckEvent) -> None:
        """Change the window, at most once per RTT downwards."""
        if event.rtt < self.target:
            self.cwnd += event.acked_packets / self.cwnd
        elif event.now - self.decreased > event.rtt:
            self.decreased = event.now
            self.cwnd = max(1.0, self.cwnd * 0.8)

    def allowance(self) -> float | apus.Allowance:
        """Return the window."""
        return self.cwnd


def main() -> None:
    """Run the same incast with each algorithm."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--duration", default="100ms", help="simulated time of each run")
    duration = parser.parse_args().duration
    apus.algorithm("constant-in-python", ConstantInPython)
    apus.algorithm("delay-in-python", DelayInPython)
    base = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for name in ("constant", "constant-in-python", "swift", "delay-in-python"):
            file = Path(folder) / "bench.toml"
            file.write_text(SCENARIO.format(name=name, duration=duration))
            (run,) = apus.run(file, record=False, progress=False)
            # Every data packet has an acknowledgement.
            acks = run.summary["packets"]["delivered"] / 2
            cost = run.cost
            seconds = cost["wall_s"]
            text = f"{name:<20} {cost['events_per_s'] / 1e6:6.2f} million events per second"
            if name == "constant":
                base = seconds / acks
            else:
                more = (seconds / acks - base) * 1e6
                text += f", {more:6.2f} us more per acknowledgement than constant"
            print(text)


if __name__ == "__main__":
    main()
