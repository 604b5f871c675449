"""An algorithm in Python beside Swift, on a link that both share.

Run it with `python python/examples/own_algorithm.py`.
"""

import tempfile
from pathlib import Path

import apus
from apus import parameters

SCENARIO = """\
duration = "5ms"
warmup = "1ms"
topology = { kind = "star", hosts = 5, rate = "100Gbps", delay = "1us", buffer = "4MB" }
[algorithm]
gradual = { target = "25us" }
swift = {}
[[workload]]
name = "in-Python"
kind = "incast"
size = "64kB"
algorithm = "gradual"
[[workload]]
name = "built-in"
kind = "incast"
size = "64kB"
algorithm = "swift"
"""


class Gradual(apus.OwnAlgorithm):
    """Keeps the RTT near a target by small steps."""

    target = parameters.time("30us", "RTT to aim at", must="above 0")
    beta = parameters.number(0.8, "multiplicative decrease", must="above 0 and below 1")

    def start(self, flow: apus.FlowInfo) -> None:
        """Begin with one packet."""
        self.window = 1.0
        self.decreased = 0.0

    def on_ack(self, event: apus.AckEvent) -> None:
        """Add a packet per RTT below the target; fall by the excess above it, once per RTT."""
        if event.rtt < self.target:
            self.window += event.acked_packets / self.window
        elif event.now - self.decreased > event.rtt:
            self.decreased = event.now
            self.window *= 1 - self.beta * (event.rtt - self.target) / event.rtt

    def on_loss(self, event: apus.LossEvent) -> None:
        """Halve the window, once per RTT."""
        if event.now - self.decreased > self.target:
            self.decreased = event.now
            self.window /= 2

    def on_timeout(self, event: apus.TimeoutEvent) -> None:
        """Begin again."""
        self.window = 1.0

    def on_packet_size(self, event: apus.PacketSizeEvent) -> None:
        """Keep the window equal in bytes: paths over UDP discover their packet size."""
        self.window = max(1.0, self.window * event.payload_before / event.payload)

    def allowance(self) -> float | apus.Allowance:
        """Return the window, paced if it is below one packet."""
        if self.window < 1:
            return apus.Allowance(self.window, delay=self.target / self.window)
        return self.window


def main() -> None:
    """Run both, and print their shares."""
    apus.algorithm("gradual", Gradual)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "shared-link.toml"
        file.write_text(SCENARIO)
        for workload in apus.run(file).summary["groups"]:
            print(f"{workload['workload']}: {workload['goodput_gbps']:.1f} Gb/s")


if __name__ == "__main__":
    main()
