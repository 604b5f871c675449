"""The ring all-reduce of ring.c from Python: ring.py LIBRARY SCENARIO BYTES."""

import ctypes
import sys
from collections.abc import Callable

CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
FOREVER = 2**64 - 1


class Simulator:
    """A simulation that this program drives. Times are picoseconds."""

    def __init__(self, library: str, scenario: str) -> None:
        self.c = ctypes.CDLL(library)
        u32, u64, sim = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p
        message = [sim, u32, u32, u64, u64, CALLBACK, ctypes.c_void_p]
        for name, result, arguments in (
            ("create_from_file", sim, [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]),
            ("destroy", None, [sim]),
            ("ranks", u32, [sim]),
            ("send", ctypes.c_int, message),
            ("recv", ctypes.c_int, message),
            ("now", u64, [sim]),
            ("run", ctypes.c_int, [sim, u64]),
            ("stop", None, [sim]),
            ("last_error", ctypes.c_char_p, [sim]),
        ):
            function = getattr(self.c, f"apus_sim_{name}")
            function.restype, function.argtypes = result, arguments
        error = ctypes.create_string_buffer(1000)
        self.sim = self.c.apus_sim_create_from_file(scenario.encode(), error, len(error))
        if not self.sim:
            raise ValueError(error.value.decode())
        # One function for C; the argument is the number of a function here.
        self.waiting: dict[int, Callable[[], None]] = {}
        self.next = 0
        self.callback = CALLBACK(self.called)
        self.raised: BaseException | None = None

    def called(self, number: int | None) -> None:
        # ctypes prints an exception that leaves a callback and goes on: the first one ends the run, which raises it.
        try:
            if self.raised is None:
                self.waiting.pop(number or 0)()
        except BaseException as error:  # Ctrl-C too
            self.raised = error
            self.c.apus_sim_stop(self.sim)

    def check(self, status: int) -> int:
        if status >= 2:
            raise ValueError(self.c.apus_sim_last_error(self.sim).decode())
        return status

    def keep(self, function: Callable[[], None]) -> int:
        self.next += 1
        self.waiting[self.next] = function
        return self.next

    @property
    def ranks(self) -> int:
        return self.c.apus_sim_ranks(self.sim)

    @property
    def now(self) -> int:
        return self.c.apus_sim_now(self.sim)

    def send(self, rank: int, to: int, size: int, tag: int = 0) -> None:
        self.check(self.c.apus_sim_send(self.sim, rank, to, tag, size, CALLBACK(), None))

    def receive(self, rank: int, sender: int, size: int, done: Callable[[], None], tag: int = 0) -> None:
        number = self.keep(done)
        self.check(self.c.apus_sim_recv(self.sim, rank, sender, tag, size, self.callback, number))

    def run(self, until: int = FOREVER) -> int:
        status = self.c.apus_sim_run(self.sim, until)
        if self.raised is not None:
            error, self.raised = self.raised, None
            raise error
        return self.check(status)

    def close(self) -> None:
        self.c.apus_sim_destroy(self.sim)
        self.sim = None


def main() -> None:
    library, scenario, size = sys.argv[1:]
    simulator = Simulator(library, scenario)
    ranks = simulator.ranks
    part = int(size) // ranks
    steps = [2 * (ranks - 1)] * ranks
    ended = [0] * ranks

    def begin(rank: int) -> None:
        simulator.receive(rank, (rank - 1) % ranks, part, lambda: step(rank))
        simulator.send(rank, (rank + 1) % ranks, part)

    def step(rank: int) -> None:
        ended[rank] = simulator.now
        steps[rank] -= 1
        if steps[rank] > 0:
            begin(rank)

    for rank in range(ranks):
        begin(rank)
    simulator.run()
    print(f"{ranks} ranks, {max(ended) / 1e6:.6f} us")
    simulator.close()


if __name__ == "__main__":
    main()
