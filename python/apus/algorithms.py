"""Algorithms of scenarios, each a class with its parameters.

Made from the declarations of scenario files (`python/tools/generate.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from apus._settings import Settings

if TYPE_CHECKING:
    from apus._types import Rate, Size, Time

__all__ = [
    "Algorithm",
    "Bolt",
    "Constant",
    "Cubic",
    "Dcqcn",
    "Dctcp",
    "Dx",
    "ExpressPass",
    "Hpcc",
    "Hull",
    "Mswift",
    "Notified",
    "Nscc",
    "Rccc",
    "Rcp",
    "Swift",
    "Timely",
]


class Algorithm(Settings):
    """An algorithm with its parameters."""


class Swift(Algorithm):
    """Algorithm `swift`.

    AIMD on delay against a target that scales with hops and flows.

    Source: Kumar et al., Swift, SIGCOMM 2020; profile falcon: falcon-transport/isekai v1.1.
    """

    def __init__(
        self,
        *,
        profile: Literal["paper", "falcon"] | None = None,
        ai: float | None = None,
        beta: float | None = None,
        max_mdf: float | None = None,
        base_target: Time | None = None,
        hop_scale: Time | None = None,
        fs_range: Time | None = None,
        fs_min_cwnd: float | None = None,
        fs_max_cwnd: float | None = None,
        min_cwnd: float | None = None,
        max_cwnd: float | None = None,
        initial_cwnd: float | None = None,
        decompose: bool | None = None,
        endpoint_target: Time | None = None,
        endpoint_min_cwnd: float | None = None,
        endpoint_gain: float | None = None,
        buffer_target: int | None = None,
        buffer_increase: float | None = None,
        pacing: Literal["below-one", "always"] | None = None,
        max_pacing_delay: Time | None = None,
        retx_reset_threshold: int | None = None,
        max_decrease_on_loss: bool | None = None,
        plb_delay_factor: float | None = None,
        plb_delayed_fraction: float | None = None,
        plb_rounds: int | None = None,
        rto_gain: float | None = None,
        rto_multiplier: float | None = None,
        min_rto: Time | None = None,
        initial_rto: Time | None = None,
    ) -> None:
        """Set the parameters that are given.

        Args:
            profile: Profile of defaults. "paper": Algorithm 1 with a fabric and an endpoint window;
                "falcon": as in Google's Falcon simulator: buffer window, path change.
            ai: additive increment in packets per RTT (number). Default: 1.
            beta: multiplicative decrease constant (number). Default: 0.8.
            max_mdf: largest fraction of the window that one decrease takes away (number). Default:
                0.5.
            base_target: target of the fabric delay for one hop and few flows (of the end-to-end
                delay if not decomposed) (time). Default: 25us. From the network in paper, falcon:
                the larger of 25us and, for the longest path, the unloaded RTT, the rest of the
                hosts' jitter and the time of 3 packets on the slowest link, without its share of
                hop scaling.
            hop_scale: target added per switch on the forward path (time). Default in paper: 1us.
                Default in falcon: 1.05us.
            fs_range: most that flow scaling adds to the target; `0us` turns flow scaling off
                (time). Default: 100us.
            fs_min_cwnd: window in packets at which flow scaling adds all of fs_range (number).
                Default in paper: 0.01. Default in falcon: 0.1.
            fs_max_cwnd: window in packets from which on flow scaling adds nothing (number). Default
                in paper: 100. Default in falcon: 256.
            min_cwnd: smallest window in packets (number). Default in paper: 0.001. Default in
                falcon: 0.01.
            max_cwnd: largest window in packets, of each window: guards the one that is not the
                bottleneck (number). Default: 256. From the network in paper, falcon: the larger of
                256 packets and 2 BDP.
            initial_cwnd: first window in packets (number). Default: 1.
            decompose: two windows for fabric and endpoint delay; `false` is Swift-v0, one window
                for the end-to-end delay (true or false). Default in paper: true.
            endpoint_target: target of the endpoint delay (time). Default in paper: 100us.
            endpoint_min_cwnd: smallest endpoint window in packets, if that is more than min_cwnd; 0
                for min_cwnd (number). Default in paper: 0.
            endpoint_gain: weight of a new sample in the average of the endpoint delay (number).
                Default in paper: 0.5.
            buffer_target: target of the receiver's buffer level in 32nds (whole number). Default in
                falcon: 15.
            buffer_increase: packets added to the receiver-buffer window per ACK below the target
                (number). Default in falcon: 1.
            pacing: when packets leave RTT/cwnd apart: at windows below one packet or always
                ("below-one", "always"). Default: below-one.
            max_pacing_delay: longest delay between two packets of a paced flow (time). Default: 1s.
            retx_reset_threshold: timeouts in a row from which on the window falls to its minimum
                (whole number). Default: 3.
            max_decrease_on_loss: whether a loss seen by SACK cuts the window by max_mdf (true or
                false). Default in paper: true. Default in falcon: false.
            plb_delay_factor: a packet counts as delayed above this multiple of the target (number).
                Default in falcon: 1.01.
            plb_delayed_fraction: a round counts as delayed from this fraction of delayed packets on
                (number). Default in falcon: 0.5.
            plb_rounds: delayed rounds in a row after which the flow changes its path (whole
                number). Default in falcon: 5.
            rto_gain: weight of a new sample in the smoothed end-to-end RTT (number, above 0 and at
                most 1). Default in paper: 0.25. Default in falcon: 0.25.
            rto_multiplier: retransmission timeout over smoothed RTT (number, at least 1). Default
                in paper: 2. Default in falcon: 2.
            min_rto: shortest retransmission timeout (time, above 0). Default in paper: 1ms. Default
                in falcon: 250us.
            initial_rto: retransmission timeout before the first RTT sample (time, above 0). Default
                in paper: 1ms. Default in falcon: 250us.
        """
        super().__init__(
            "Swift",
            {"name": "swift"},
            {},
            {
                "profile": profile,
                "ai": ai,
                "beta": beta,
                "max_mdf": max_mdf,
                "base_target": base_target,
                "hop_scale": hop_scale,
                "fs_range": fs_range,
                "fs_min_cwnd": fs_min_cwnd,
                "fs_max_cwnd": fs_max_cwnd,
                "min_cwnd": min_cwnd,
                "max_cwnd": max_cwnd,
                "initial_cwnd": initial_cwnd,
                "decompose": decompose,
                "endpoint_target": endpoint_target,
                "endpoint_min_cwnd": endpoint_min_cwnd,
                "endpoint_gain": endpoint_gain,
                "buffer_target": buffer_target,
                "buffer_increase": buffer_increase,
                "pacing": pacing,
                "max_pacing_delay": max_pacing_delay,
                "retx_reset_threshold": retx_reset_threshold,
                "max_decrease_on_loss": max_decrease_on_loss,
                "plb_delay_factor": plb_delay_factor,
                "plb_delayed_fraction": plb_delayed_fraction,
                "plb_rounds": plb_rounds,
                "rto_gain": rto_gain,
                "rto_multiplier": rto_multiplier,
                "min_rto": min_rto,
                "initial_rto": initial_rto,
            },
        )


class Dctcp(Algorithm):
    """Algorithm `dctcp`.

    Cuts the window once per RTT by half the fraction of ECN-marked packets.

    Source: RFC 8257: Data Center TCP (2017); GCN: Swift (SIGCOMM 2020) §4.1.
    """

    def __init__(
        self,
        *,
        profile: Literal["rfc8257", "gcn"] | None = None,
        g: float | None = None,
        initial_alpha: float | None = None,
        reaction: Literal["per-window", "per-packet"] | None = None,
        initial_cwnd: float | None = None,
        min_cwnd: float | None = None,
        max_cwnd: float | None = None,
        rto_gain: float | None = None,
        rto_multiplier: float | None = None,
        min_rto: Time | None = None,
        initial_rto: Time | None = None,
    ) -> None:
        """Set the parameters that are given.

        Args:
            profile: Profile of defaults. "rfc8257": as RFC 8257 has it; "gcn": Google's variant:
                cuts by the mark rate of the current window.
            g: weight of the newest window of data in the estimate of the marked fraction (number,
                above 0 and at most 1). Default in rfc8257: 0.0625. Default in gcn: 1.
            initial_alpha: estimate of the marked fraction before the first window of data has been
                acknowledged (number, between 0 and 1). Default: 1.
            reaction: "per-packet": each marked packet takes a quarter of a packet off the window,
                each trimmed, lost or timed-out one a whole one; a window without marks adds one
                ("per-window", "per-packet"). Default: per-window.
            initial_cwnd: first window in packets (number). Default: 10.
            min_cwnd: smallest window in packets, also the one after a timeout (number, at least 1).
                Default: 1.
            max_cwnd: largest window in packets (number). Default: 256. From the network in rfc8257,
                gcn: the larger of 256 packets and 2 BDP.
            rto_gain: weight of a new sample in the smoothed end-to-end RTT (number, above 0 and at
                most 1). Default: 0.25.
            rto_multiplier: retransmission timeout over smoothed RTT (number, at least 1). Default:
                2.
            min_rto: shortest retransmission timeout (time, above 0). Default: 1ms.
            initial_rto: retransmission timeout before the first RTT sample (time, above 0).
                Default: 1ms.
        """
        super().__init__(
            "Dctcp",
            {"name": "dctcp"},
            {},
            {
                "profile": profile,
                "g": g,
                "initial_alpha": initial_alpha,
                "reaction": reaction,
                "initial_cwnd": initial_cwnd,
                "min_cwnd": min_cwnd,
                "max_cwnd": max_cwnd,
                "rto_gain": rto_gain,
                "rto_multiplier": rto_multiplier,
                "min_rto": min_rto,
                "initial_rto": initial_rto,
            },
        )


class Bolt(Algorithm):
    """Algorithm `bolt`.

    Switches tell the source of queues at once, and hand out bandwidth about to be free.

    Source: Arslan et al., Bolt, NSDI 2023.
    """

    def __init__(
        self,
        *,
        profile: Literal["paper", "code"] | None = None,
        initial_cwnd: float | None = None,
        min_cwnd: float | None = None,
        max_cwnd: float | None = None,
        below_one: Literal["hold", "halve"] | None = None,
        rate: Literal["line", "window"] | None = None,
        pacing: Literal["below-one", "rest", "always"] | None = None,
        ai: float | None = None,
        validate_window: bool | None = None,
        first: Literal["bytes", "unacknowledged"] | None = None,
        last: Literal["after", "with"] | None = None,
        inc: Literal["every", "continuing"] | None = None,
        idle_reset: bool | None = None,
        cc_threshold: float | None = None,
        uncounted_packets: float | None = None,
        pru: bool | None = None,
        sm: bool | None = None,
        sm_counts: Literal["data", "all"] | None = None,
        sm_supply: Literal["weighted", "link"] | None = None,
        pru_cap: int | None = None,
        favoured: bool | None = None,
        src_probability: float | None = None,
        max_mdf: float | None = None,
        fallback: Literal["none", "swift"] | None = None,
        fallback_base_target: Time | None = None,
        fallback_fs_range: Time | None = None,
        fallback_fs_min_cwnd: float | None = None,
        fallback_fs_max_cwnd: float | None = None,
        rto_gain: float | None = None,
        rto_multiplier: float | None = None,
        min_rto: Time | None = None,
        initial_rto: Time | None = None,
    ) -> None:
        """Set the parameters that are given.

        Args:
            profile: Profile of defaults. "paper": Algorithms 1 to 4; "code": differences of the
                authors' simulator, which produced the figures.
            initial_cwnd: first window in packets (number). Default: 64. From the network in paper,
                code: 1 BDP, within min_cwnd and max_cwnd.
            min_cwnd: smallest window in packets; below 1 only with `below_one = "halve"` (number).
                Default in paper: 1. Default in code: 0.01.
            max_cwnd: largest window in packets (number). Default: 4096.
            below_one: effect of an SRC on a window of at most one packet: none, or every SRC halves
                it, and packets are paced; a larger window then loses a whole packet, so that a
                fraction may be left ("hold", "halve"). Default in paper: hold. Default in code:
                halve.
            rate: rate of a flow in the reaction factor: the window over the latest RTT, at most the
                host's link (`line`), or without this limit (`window`) ("line", "window"). Default
                in paper: line. Default in code: window.
            pacing: packets that leave RTT/cwnd after the previous one: with windows below one
                packet; also packets that fit only partly into the window; or all packets after the
                first RTT ("below-one", "rest", "always"). Default in paper: below-one. Default in
                code: rest.
            ai: packets added to the window once per RTT (number, 0 or more). Default: 1.
            validate_window: whether the window grows only while it limits the flow (true or false).
                Default in paper: true. Default in code: false.
            first: which packets carry FIRST: bytes sent below the window, or all until the first
                ACK ("bytes", "unacknowledged"). Default in paper: bytes. Default in code:
                unacknowledged.
            last: which packets carry LAST: those after which less than a window is left to send, or
                those with which at most a window is ("after", "with"). Default in paper: after.
                Default in code: with.
            inc: which packets request a larger window: all, or those neither FIRST nor LAST
                ("every", "continuing"). Default in paper: every. Default in code: continuing.
            idle_reset: whether data after an idle RTT counts as a first window again (true or
                false). Default: true.
            cc_threshold: queue from which on a port is congested, in packets of full size (number,
                0 or more). Default in paper: 1. Default in code: 2.
            uncounted_packets: packets of full size that wait in a port and are not part of the
                queue that counts (number, 0 or more). Default in paper: 0. Default in code: 1.
            pru: whether switches hand out PRU tokens (true or false). Default: true.
            sm: whether switches hand out SM tokens (true or false). Default: true.
            sm_counts: which packets count as demand for supply matching ("data", "all"). Default in
                paper: data. Default in code: all.
            sm_supply: supply of a class in supply matching if several classes share a port: its
                share of the link by weight among classes with packets (Alg. 4), or the whole link
                (Alg. 3) ("weighted", "link"). Default: weighted.
            pru_cap: most PRU tokens that a port holds; 0 for any number (whole number). Default in
                paper: 0. Default in code: 256.
            favoured: whether the flow is of high priority, for which switches send SRCs with
                `src_probability` (true or false). Default: false.
            src_probability: probability that a congested switch sends the SRC that is due to a
                favoured flow (number, between 0 and 1). Default: 1.
            max_mdf: fraction of the window that a loss takes away, once per RTT (number, above 0
                and at most 1). Default: 0.5.
            fallback: whether Swift runs in parallel and the smaller window applies ("none",
                "swift"). Default: none.
            fallback_base_target: Swift's base target in the fallback (time). Default: 25us. From
                the network in paper, code: the larger of 25us and, for the longest path, the
                unloaded RTT, the rest of the hosts' jitter and the time of 3 packets on the slowest
                link, without its share of hop scaling.
            fallback_fs_range: Swift's range of flow scaling in the fallback (time). Default: 100us.
            fallback_fs_min_cwnd: window at which the fallback's flow scaling adds all of its range
                (number). Default: 0.01.
            fallback_fs_max_cwnd: window from which on the fallback's flow scaling adds nothing
                (number). Default: 100.
            rto_gain: weight of a new sample in the smoothed end-to-end RTT (number, above 0 and at
                most 1). Default: 0.25.
            rto_multiplier: retransmission timeout over smoothed RTT (number, at least 1). Default:
                2.
            min_rto: shortest retransmission timeout (time, above 0). Default: 1ms.
            initial_rto: retransmission timeout before the first RTT sample (time, above 0).
                Default: 1ms.
        """
        super().__init__(
            "Bolt",
            {"name": "bolt"},
            {},
            {
                "profile": profile,
                "initial_cwnd": initial_cwnd,
                "min_cwnd": min_cwnd,
                "max_cwnd": max_cwnd,
                "below_one": below_one,
                "rate": rate,
                "pacing": pacing,
                "ai": ai,
                "validate_window": validate_window,
                "first": first,
                "last": last,
                "inc": inc,
                "idle_reset": idle_reset,
                "cc_threshold": cc_threshold,
                "uncounted_packets": uncounted_packets,
                "pru": pru,
                "sm": sm,
                "sm_counts": sm_counts,
                "sm_supply": sm_supply,
                "pru_cap": pru_cap,
                "favoured": favoured,
                "src_probability": src_probability,
                "max_mdf": max_mdf,
                "fallback": fallback,
                "fallback_base_target": fallback_base_target,
                "fallback_fs_range": fallback_fs_range,
                "fallback_fs_min_cwnd": fallback_fs_min_cwnd,
                "fallback_fs_max_cwnd": fallback_fs_max_cwnd,
                "rto_gain": rto_gain,
                "rto_multiplier": rto_multiplier,
                "min_rto": min_rto,
                "initial_rto": initial_rto,
            },
        )


class Hpcc(Algorithm):
    """Algorithm `hpcc`.

    Sets the window from the bytes in flight that switches report on packets.

    Source: Li et al., HPCC, SIGCOMM 2019.
    """

    def __init__(
        self,
        *,
        profile: Literal["paper", "bolt"] | None = None,
        base_rtt: Time | None = None,
        eta: float | None = None,
        max_stage: int | None = None,
        additive_rate: Rate | None = None,
        min_rate: Rate | None = None,
        rto_gain: float | None = None,
        rto_multiplier: float | None = None,
        min_rto: Time | None = None,
        initial_rto: Time | None = None,
    ) -> None:
        """Set the parameters that are given.

        Args:
            profile: Profile of defaults. "paper": Algorithm 1; "bolt": as the authors of Bolt ran
                it, with the packets of HPCC's simulator.
            base_rtt: T: the largest base RTT of the network; the first window is T at the host's
                rate (time, above 0). Default in paper: 13us. Default in bolt: 8us. From the network
                in paper, bolt: the unloaded RTT of the longest path.
            eta: utilisation aimed at (number, above 0 and at most 1). Default: 0.95.
            max_stage: RTTs of additive increase before a multiplicative one (whole number). Default
                in paper: 5. Default in bolt: 0.
            additive_rate: additive increase W_AI as a rate: W_AI is this rate times base_rtt
                (rate). Default in paper: 50Mbps. Default in bolt: 50Mbps. From the network in
                paper: line rate * (1 - eta) / 100.
            min_rate: minimum of the window, as a rate times base_rtt (rate, above 0). Default:
                100Mbps.
            rto_gain: weight of a new sample in the smoothed end-to-end RTT (number, above 0 and at
                most 1). Default: 0.25.
            rto_multiplier: retransmission timeout over smoothed RTT (number, at least 1). Default:
                2.
            min_rto: shortest retransmission timeout (time, above 0). Default: 1ms.
            initial_rto: retransmission timeout before the first RTT sample (time, above 0).
                Default: 1ms.
        """
        super().__init__(
            "Hpcc",
            {"name": "hpcc"},
            {},
            {
                "profile": profile,
                "base_rtt": base_rtt,
                "eta": eta,
                "max_stage": max_stage,
                "additive_rate": additive_rate,
                "min_rate": min_rate,
                "rto_gain": rto_gain,
                "rto_multiplier": rto_multiplier,
                "min_rto": min_rto,
                "initial_rto": initial_rto,
            },
        )


class ExpressPass(Algorithm):
    """Algorithm `expresspass`.

    Sends a packet per credit of the receiver; ports limit the rate of credits.

    Source: Cho, Jang, Han: Credit-Scheduled Delay-Bounded Congestion Control for Datacenters,
    SIGCOMM 2017.
    """

    def __init__(
        self,
        *,
        profile: Literal["code", "paper", "code-2018"] | None = None,
        feedback: bool | None = None,
        alpha: float | None = None,
        alpha_packets: int | None = None,
        w_init: float | None = None,
        w_min: float | None = None,
        w_max: float | None = None,
        target_loss: float | None = None,
        jitter: float | None = None,
        random_sizes: bool | None = None,
        credit_burst: int | None = None,
        credit_queue: int | None = None,
        credit_queue_counts: Literal["credits", "bytes"] | None = None,
        stop: Literal["last-data", "wasted-credit", "early"] | None = None,
        request_timeout: Time | None = None,
        idle_timeout: Time | None = None,
        rto_gain: float | None = None,
        rto_multiplier: float | None = None,
        min_rto: Time | None = None,
        initial_rto: Time | None = None,
    ) -> None:
        """Set the parameters that are given.

        Args:
            profile: Profile of defaults. "code": the feedback control of the authors' simulator;
                "paper": the paper's feedback control (unverified); "code-2018": the authors'
                simulator since April 2018: the first rate grows with the data to send, and credits
                are stopped early.
            feedback: whether the credit rate follows credit loss; if not, credits leave at the
                line's rate (true or false). Default: true.
            alpha: first credit rate over the largest (number, above 0 and at most 1). Default: 0.5.
            alpha_packets: packets to send from which the first credit rate is `alpha`; with fewer
                it is less in proportion; 0: always `alpha` (whole number). Default in paper: 0.
                Default in code: 0. Default in code-2018: 40.
            w_init: first aggressiveness factor (number). Default in paper: 0.5. Default in code:
                0.5. Default in code-2018: 0.0625.
            w_min: smallest aggressiveness factor (number, above 0 and at most 1). Default: 0.01.
            w_max: largest aggressiveness factor (number, above 0 and at most 1). Default: 0.5.
            target_loss: credit loss that the rate is steered to; in `code` its largest value
                (number, at least 0 and below 1). Default in paper: 0.1. Default in code: 0.125.
                Default in code-2018: 0.125.
            jitter: the gap between two credits varies by up to this fraction of it, either way
                (number, at least 0 and below 1). Default: 0.1.
            random_sizes: whether the sizes of credits vary, by 8 B either way of the nominal (true
                or false). Default: true.
            credit_burst: credits that a port lets pass at once: the size of its token bucket (whole
                number, at least 1). Default: 2.
            credit_queue: credits that may wait in a port (whole number, at least 1). Default: 8.
            credit_queue_counts: what a port counts of the credits that wait; "bytes": as many as
                `credit_queue` credits of nominal size have ("credits", "bytes"). Default: credits.
            stop: when the sender says that it has no more data; "early": when as many credits as
                packets that are left came in the last RTT, and so may be in flight ("last-data",
                "wasted-credit", "early"). Default in paper: wasted-credit. Default in code:
                last-data. Default in code-2018: early.
            request_timeout: a sender that has data and gets no credit for this long asks again; one
                whose stop is not answered stops again (time, above 0). Default: 10ms. From the
                network in paper, code, code-2018: the larger of 10ms and twice the time of 2048
                full packets on the slowest link of the longest path.
            idle_timeout: a receiver stops sending credits after this time without data (time, above
                0). Default: 100ms.
            rto_gain: weight of a new sample in the smoothed end-to-end RTT (number, above 0 and at
                most 1). Default: 0.25.
            rto_multiplier: retransmission timeout over smoothed RTT (number, at least 1). Default:
                2.
            min_rto: shortest retransmission timeout (time, above 0). Default: 100ms.
            initial_rto: retransmission timeout before the first RTT sample (time, above 0).
                Default: 100ms.
        """
        super().__init__(
            "ExpressPass",
            {"name": "expresspass"},
            {},
            {
                "profile": profile,
                "feedback": feedback,
                "alpha": alpha,
                "alpha_packets": alpha_packets,
                "w_init": w_init,
                "w_min": w_min,
                "w_max": w_max,
                "target_loss": target_loss,
                "jitter": jitter,
                "random_sizes": random_sizes,
                "credit_burst": credit_burst,
                "credit_queue": credit_queue,
                "credit_queue_counts": credit_queue_counts,
                "stop": stop,
                "request_timeout": request_timeout,
                "idle_timeout": idle_timeout,
                "rto_gain": rto_gain,
                "rto_multiplier": rto_multiplier,
                "min_rto": min_rto,
                "initial_rto": initial_rto,
            },
        )


class Cubic(Algorithm):
    """Algorithm `cubic`.

    Grows the window along a cubic curve of the time since the last loss.

    Source: RFC 9438: CUBIC for Fast and Long-Distance Networks (2023).
    """

    def __init__(
        self,
        *,
        profile: Literal["rfc9438"] | None = None,
        c: float | None = None,
        beta: float | None = None,
        fast_convergence: bool | None = None,
        ecn: bool | None = None,
        initial_cwnd: float | None = None,
        max_cwnd: float | None = None,
        rto_gain: float | None = None,
        rto_multiplier: float | None = None,
        min_rto: Time | None = None,
        initial_rto: Time | None = None,
    ) -> None:
        """Set the parameters that are given.

        Args:
            profile: Profile of defaults. "rfc9438": as RFC 9438 has it.
            c: C: how fast the curve grows, in packets per cubic second (number, above 0). Default:
                0.4.
            beta: beta_cubic: factor of the window at a congestion event (number, above 0 and below
                1). Default: 0.7.
            fast_convergence: leave room for new flows when the window at losses falls (true or
                false). Default: true.
            ecn: take part in ECN: a mark counts as a congestion event (true or false). Default:
                false.
            initial_cwnd: first window in packets (number). Default: 10.
            max_cwnd: largest window in packets (number). Default: 65536.
            rto_gain: weight of a new sample in the smoothed end-to-end RTT (number, above 0 and at
                most 1). Default: 0.25.
            rto_multiplier: retransmission timeout over smoothed RTT (number, at least 1). Default:
                2.
            min_rto: shortest retransmission timeout (time, above 0). Default: 1ms.
            initial_rto: retransmission timeout before the first RTT sample (time, above 0).
                Default: 1ms.
        """
        super().__init__(
            "Cubic",
            {"name": "cubic"},
            {},
            {
                "profile": profile,
                "c": c,
                "beta": beta,
                "fast_convergence": fast_convergence,
                "ecn": ecn,
                "initial_cwnd": initial_cwnd,
                "max_cwnd": max_cwnd,
                "rto_gain": rto_gain,
                "rto_multiplier": rto_multiplier,
                "min_rto": min_rto,
                "initial_rto": initial_rto,
            },
        )


class Timely(Algorithm):
    """Algorithm `timely`.

    Adapts a rate to the gradient of the RTT between two thresholds.

    Source: Mittal et al., TIMELY, SIGCOMM 2015; profile patched: Zhu et al., ECN or Delay, CoNEXT
    2016.
    """

    def __init__(
        self,
        *,
        profile: Literal["paper", "patched"] | None = None,
        t_low: Time | None = None,
        t_high: Time | None = None,
        t_ref: Time | None = None,
        min_rtt: Time | None = None,
        delta: Rate | None = None,
        alpha: float | None = None,
        beta: float | None = None,
        hai_thresh: int | None = None,
        segment: Size | None = None,
        initial_share: float | None = None,
        min_rate: Rate | None = None,
        rto_gain: float | None = None,
        rto_multiplier: float | None = None,
        min_rto: Time | None = None,
        initial_rto: Time | None = None,
    ) -> None:
        """Set the parameters that are given.

        Args:
            profile: Profile of defaults. "paper": TIMELY's Algorithm 1; "patched": Patched TIMELY:
                the decrease depends on the distance from a target RTT.
            t_low: below this RTT the rate grows for any gradient (time). Default: 50us. From the
                network in paper, patched: 2.5 min_rtt, at most t_high.
            t_high: above this RTT the rate falls for any gradient (time). Default: 500us. From the
                network in paper, patched: 25 min_rtt, at least t_low.
            t_ref: RTT that the patched decrease is measured from (time, above 0). Default in
                patched: 50us. From the network in patched: t_low.
            min_rtt: D_minRTT: divisor of the gradient, and minimum time between two changes of the
                rate (time, above 0). Default: 20us. From the network in paper, patched: the
                unloaded RTT of the longest path.
            delta: additive increase of the rate (rate, above 0). Default: 10Mbps.
            alpha: weight of a new difference of RTTs in their average (number, above 0 and at most
                1). Default: 0.875.
            beta: multiplicative decrease (number, above 0 and at most 1). Default in paper: 0.8.
                Default in patched: 0.008.
            hai_thresh: changes of rate without a positive gradient after which the increase is five
                times as large (whole number, at least 1). Default in paper: 5.
            segment: payload bytes whose acknowledgement is a completion event (size, above 0).
                Default: 16KiB.
            initial_share: first rate as a fraction of the host's line (number, above 0 and at most
                1). Default: 0.1.
            min_rate: smallest rate (rate, above 0). Default: 10Mbps.
            rto_gain: weight of a new sample in the smoothed end-to-end RTT (number, above 0 and at
                most 1). Default: 0.25.
            rto_multiplier: retransmission timeout over smoothed RTT (number, at least 1). Default:
                2.
            min_rto: shortest retransmission timeout (time, above 0). Default: 1ms.
            initial_rto: retransmission timeout before the first RTT sample (time, above 0).
                Default: 1ms.
        """
        super().__init__(
            "Timely",
            {"name": "timely"},
            {},
            {
                "profile": profile,
                "t_low": t_low,
                "t_high": t_high,
                "t_ref": t_ref,
                "min_rtt": min_rtt,
                "delta": delta,
                "alpha": alpha,
                "beta": beta,
                "hai_thresh": hai_thresh,
                "segment": segment,
                "initial_share": initial_share,
                "min_rate": min_rate,
                "rto_gain": rto_gain,
                "rto_multiplier": rto_multiplier,
                "min_rto": min_rto,
                "initial_rto": initial_rto,
            },
        )


class Dx(Algorithm):
    """Algorithm `dx`.

    Grows the window while nothing queues, shrinks it in proportion to queueing delay.

    Source: Lee et al., DX: Accurate Latency-based Congestion Feedback for Datacenters, USENIX ATC
    2015.
    """

    def __init__(
        self,
        *,
        profile: Literal["paper"] | None = None,
        ai: float | None = None,
        headroom: Time | None = None,
        slow_start: bool | None = None,
        initial_cwnd: float | None = None,
        min_cwnd: float | None = None,
        max_cwnd: float | None = None,
        rto_gain: float | None = None,
        rto_multiplier: float | None = None,
        min_rto: Time | None = None,
        initial_rto: Time | None = None,
    ) -> None:
        """Set the parameters that are given.

        Args:
            profile: Profile of defaults. "paper": §4 of the paper.
            ai: packets added to the window in an RTT without queueing (number, above 0). Default:
                1.
            headroom: average queueing delay up to which no packet counts as queued (time). Default:
                1us.
            slow_start: double the window per RTT until the first queueing delay or loss (true or
                false). Default: true.
            initial_cwnd: first window in packets (number). Default: 10.
            min_cwnd: smallest window in packets (number, at least 1). Default: 1.
            max_cwnd: largest window in packets (number). Default: 65536.
            rto_gain: weight of a new sample in the smoothed end-to-end RTT (number, above 0 and at
                most 1). Default: 0.25.
            rto_multiplier: retransmission timeout over smoothed RTT (number, at least 1). Default:
                2.
            min_rto: shortest retransmission timeout (time, above 0). Default: 1ms.
            initial_rto: retransmission timeout before the first RTT sample (time, above 0).
                Default: 1ms.
        """
        super().__init__(
            "Dx",
            {"name": "dx"},
            {},
            {
                "profile": profile,
                "ai": ai,
                "headroom": headroom,
                "slow_start": slow_start,
                "initial_cwnd": initial_cwnd,
                "min_cwnd": min_cwnd,
                "max_cwnd": max_cwnd,
                "rto_gain": rto_gain,
                "rto_multiplier": rto_multiplier,
                "min_rto": min_rto,
                "initial_rto": initial_rto,
            },
        )


class Dcqcn(Algorithm):
    """Algorithm `dcqcn`.

    Cuts a rate on notifications of marks, recovers by a timer and a byte counter.

    Source: Zhu et al., DCQCN: Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015.
    """

    def __init__(
        self,
        *,
        profile: Literal["paper"] | None = None,
        g: float | None = None,
        alpha_timer: Time | None = None,
        timer: Time | None = None,
        byte_counter: Size | None = None,
        f: int | None = None,
        r_ai: Rate | None = None,
        r_hai: Rate | None = None,
        min_rate: Rate | None = None,
        cnp_interval: Time | None = None,
        k_min: Size | None = None,
        k_max: Size | None = None,
        p_max: float | None = None,
        rto_gain: float | None = None,
        rto_multiplier: float | None = None,
        min_rto: Time | None = None,
        initial_rto: Time | None = None,
    ) -> None:
        """Set the parameters that are given.

        Args:
            profile: Profile of defaults. "paper": §3.1 with the values of §5.
            g: weight of a notification in alpha, the estimate of congestion (number, above 0 and at
                most 1). Default: 0.00390625.
            alpha_timer: alpha falls once per this time without a notification (time, above 0).
                Default: 55us.
            timer: T: the rate rises once per this time (time, above 0). Default: 55us.
            byte_counter: B: the rate rises once per this many wire bytes sent (size, above 0).
                Default: 10MB.
            f: F: rises of fast recovery before additive increase, and of that before hyper increase
                (whole number). Default: 5.
            r_ai: additive increase of the target rate (rate, above 0). Default: 40Mbps.
            r_hai: hyper increase of the target rate (rate). Default: 400Mbps.
            min_rate: smallest rate (rate, above 0). Default: 10Mbps.
            cnp_interval: N: a receiver notifies the sender of a flow at most once per this time
                (time). Default: 50us.
            k_min: queue of a switch port from which on packets are marked (size). Default: 5kB.
                From the network in paper: 5kB * line rate / 40Gbps, at most k_max.
            k_max: queue of a switch port above which every packet is marked (size). Default: 200kB.
                From the network in paper: 200kB * line rate / 40Gbps, at least k_min.
            p_max: probability of a mark at a queue of k_max (number, above 0 and at most 1).
                Default: 0.01.
            rto_gain: weight of a new sample in the smoothed end-to-end RTT (number, above 0 and at
                most 1). Default: 0.25.
            rto_multiplier: retransmission timeout over smoothed RTT (number, at least 1). Default:
                2.
            min_rto: shortest retransmission timeout (time, above 0). Default: 1ms.
            initial_rto: retransmission timeout before the first RTT sample (time, above 0).
                Default: 1ms.
        """
        super().__init__(
            "Dcqcn",
            {"name": "dcqcn"},
            {},
            {
                "profile": profile,
                "g": g,
                "alpha_timer": alpha_timer,
                "timer": timer,
                "byte_counter": byte_counter,
                "f": f,
                "r_ai": r_ai,
                "r_hai": r_hai,
                "min_rate": min_rate,
                "cnp_interval": cnp_interval,
                "k_min": k_min,
                "k_max": k_max,
                "p_max": p_max,
                "rto_gain": rto_gain,
                "rto_multiplier": rto_multiplier,
                "min_rto": min_rto,
                "initial_rto": initial_rto,
            },
        )


class Rcp(Algorithm):
    """Algorithm `rcp`.

    Paces at the smallest rate that the ports of its path give to every flow.

    Source: Dukkipati et al., Processor Sharing Flows in the Internet, IWQoS 2005; ns-2 rcp.cc.
    """

    def __init__(
        self,
        *,
        profile: Literal["paper"] | None = None,
        alpha: float | None = None,
        beta: float | None = None,
        initial_rate: float | None = None,
        rtt_gain: float | None = None,
        initial_rtt: Time | None = None,
        rto_gain: float | None = None,
        rto_multiplier: float | None = None,
        min_rto: Time | None = None,
        initial_rto: Time | None = None,
    ) -> None:
        """Set the parameters that are given.

        Args:
            profile: Profile of defaults. "paper": with the constants of ns-2.
            alpha: gain of the capacity that is left over (number, above 0 and below 2). Default:
                0.4.
            beta: gain of the queue (number, above 0 and below 2). Default: 0.4.
            initial_rate: a port's first rate over that of its link (number, above 0 and at most 1).
                Default: 0.05.
            rtt_gain: weight of a packet's RTT in a port's average of them (number, above 0 and at
                most 1). Default: 0.02.
            initial_rtt: a port's average RTT before any packet has stated one (time, above 0).
                Default: 50us. From the network in paper: the unloaded RTT of the longest path.
            rto_gain: weight of a new sample in the smoothed end-to-end RTT (number, above 0 and at
                most 1). Default: 0.25.
            rto_multiplier: retransmission timeout over smoothed RTT (number, at least 1). Default:
                2.
            min_rto: shortest retransmission timeout (time, above 0). Default: 1ms.
            initial_rto: retransmission timeout before the first RTT sample (time, above 0).
                Default: 1ms.
        """
        super().__init__(
            "Rcp",
            {"name": "rcp"},
            {},
            {
                "profile": profile,
                "alpha": alpha,
                "beta": beta,
                "initial_rate": initial_rate,
                "rtt_gain": rtt_gain,
                "initial_rtt": initial_rtt,
                "rto_gain": rto_gain,
                "rto_multiplier": rto_multiplier,
                "min_rto": min_rto,
                "initial_rto": initial_rto,
            },
        )


class Hull(Algorithm):
    """Algorithm `hull`.

    DCTCP by marks of phantom queues, which leave some of each link unused; paced.

    Source: Alizadeh et al., Less is More, NSDI 2012.
    """

    def __init__(
        self,
        *,
        profile: Literal["paper"] | None = None,
        gamma: float | None = None,
        threshold_per_gbps: Size | None = None,
        pacing: bool | None = None,
        pacer_probability: float | None = None,
        pacer_timeout: Time | None = None,
        pacer_interval: Time | None = None,
        pacer_eta: float | None = None,
        pacer_beta: float | None = None,
        g: float | None = None,
        initial_alpha: float | None = None,
        initial_cwnd: float | None = None,
        min_cwnd: float | None = None,
        max_cwnd: float | None = None,
        rto_gain: float | None = None,
        rto_multiplier: float | None = None,
        min_rto: Time | None = None,
        initial_rto: Time | None = None,
    ) -> None:
        """Set the parameters that are given.

        Args:
            profile: Profile of defaults. "paper": with the paper's constants.
            gamma: rate at which a phantom queue drains over that of its link (number, above 0 and
                at most 1). Default: 0.95.
            threshold_per_gbps: bytes in a phantom queue above which it marks, per Gb/s of its link
                (size). Default: 1kB.
            pacing: whether flows that see marks are paced (true or false). Default: true.
            pacer_probability: probability that an acknowledgement with a mark has its flow paced
                (number, above 0 and at most 1). Default: 0.125.
            pacer_timeout: how long a flow stays paced after that (time, above 0). Default: 10ms.
            pacer_interval: T_r: interval at which the pacing rate is computed (time, above 0).
                Default: 64us.
            pacer_eta: weight of the newest interval in the pace (number, above 0 and at most 1).
                Default: 0.125.
            pacer_beta: increase of the pacing rate per backlog, in kb/s per byte (number, above 0).
                Default: 16.
            g: weight of the newest window of data in the estimate of the marked fraction (number,
                above 0 and at most 1). Default: 0.0625.
            initial_alpha: estimate of the marked fraction before the first window of data has been
                acknowledged (number, between 0 and 1). Default: 1.
            initial_cwnd: first window in packets (number). Default: 10.
            min_cwnd: smallest window in packets, also the one after a timeout (number, at least 1).
                Default: 1.
            max_cwnd: largest window in packets (number). Default: 256. From the network in paper:
                the larger of 256 packets and 2 BDP.
            rto_gain: weight of a new sample in the smoothed end-to-end RTT (number, above 0 and at
                most 1). Default: 0.25.
            rto_multiplier: retransmission timeout over smoothed RTT (number, at least 1). Default:
                2.
            min_rto: shortest retransmission timeout (time, above 0). Default: 1ms.
            initial_rto: retransmission timeout before the first RTT sample (time, above 0).
                Default: 1ms.
        """
        super().__init__(
            "Hull",
            {"name": "hull"},
            {},
            {
                "profile": profile,
                "gamma": gamma,
                "threshold_per_gbps": threshold_per_gbps,
                "pacing": pacing,
                "pacer_probability": pacer_probability,
                "pacer_timeout": pacer_timeout,
                "pacer_interval": pacer_interval,
                "pacer_eta": pacer_eta,
                "pacer_beta": pacer_beta,
                "g": g,
                "initial_alpha": initial_alpha,
                "initial_cwnd": initial_cwnd,
                "min_cwnd": min_cwnd,
                "max_cwnd": max_cwnd,
                "rto_gain": rto_gain,
                "rto_multiplier": rto_multiplier,
                "min_rto": min_rto,
                "initial_rto": initial_rto,
            },
        )


class Notified(Algorithm):
    """Algorithm `notified`.

    Reacts to queues that switches report, after a configured delay, to study the effect of this
    delay.

    Source: Arslan et al., Bolt, NSDI 2023, §2.1.1 and Fig. 10.
    """

    def __init__(
        self,
        *,
        profile: Literal["study"] | None = None,
        base_rtt: Time | None = None,
        delay: Time | None = None,
        point: Literal["arrival", "departure"] | None = None,
        reaction: Literal["swift", "ideal"] | None = None,
        initial_cwnd: float | None = None,
        base_target: Time | None = None,
        fs_range: Time | None = None,
        fs_min_cwnd: float | None = None,
        fs_max_cwnd: float | None = None,
        rto_gain: float | None = None,
        rto_multiplier: float | None = None,
        min_rto: Time | None = None,
        initial_rto: Time | None = None,
    ) -> None:
        """Set the parameters that are given.

        Args:
            profile: Profile of defaults. "study": Bolt Fig. 2: Swift's reaction.
            base_rtt: RTT without queues; with the reported queue it is the RTT that the packet will
                observe (time, above 0). Default: 8us. From the network in study: the unloaded RTT
                of the longest path.
            delay: from the signal's arrival to the reaction (time). Default: 0us.
            point: whether the delay counts from the packet's arrival at the queue or from when it
                has left it ("arrival", "departure"). Default: arrival.
            reaction: Swift's Algorithm 1, or division of the window by the load, once per RTT
                ("swift", "ideal"). Default: swift.
            initial_cwnd: first window in packets (number, at least 1). Default: 66. From the
                network in study: 1 BDP.
            base_target: Swift's base target (time). Default: 6us.
            fs_range: most that Swift's flow scaling adds to the target (time). Default: 100us.
            fs_min_cwnd: window at which flow scaling adds all of its range (number). Default: 0.1.
            fs_max_cwnd: window from which on flow scaling adds nothing (number). Default: 256.
            rto_gain: weight of a new sample in the smoothed end-to-end RTT (number, above 0 and at
                most 1). Default: 0.25.
            rto_multiplier: retransmission timeout over smoothed RTT (number, at least 1). Default:
                2.
            min_rto: shortest retransmission timeout (time, above 0). Default: 1ms.
            initial_rto: retransmission timeout before the first RTT sample (time, above 0).
                Default: 1ms.
        """
        super().__init__(
            "Notified",
            {"name": "notified"},
            {},
            {
                "profile": profile,
                "base_rtt": base_rtt,
                "delay": delay,
                "point": point,
                "reaction": reaction,
                "initial_cwnd": initial_cwnd,
                "base_target": base_target,
                "fs_range": fs_range,
                "fs_min_cwnd": fs_min_cwnd,
                "fs_max_cwnd": fs_max_cwnd,
                "rto_gain": rto_gain,
                "rto_multiplier": rto_multiplier,
                "min_rto": min_rto,
                "initial_rto": initial_rto,
            },
        )


class Nscc(Algorithm):
    """Algorithm `nscc`.

    Starts at line rate, and follows marks, queueing delay and trimmed packets.

    Source: uet-htsim 40ccb05, after the Ultra Ethernet Specification 1.0 (2025) §3.6.13; profile
    median: MNSCC (arXiv 2509.07907).
    """

    def __init__(
        self,
        *,
        profile: Literal["trimming", "drop-tail", "median"] | None = None,
        network_rtt: Time | None = None,
        target_queueing: Time | None = None,
        window_factor: float | None = None,
        proportional: float | None = None,
        fair: float | None = None,
        eta: float | None = None,
        fast: float | None = None,
        fast_delay: Time | None = None,
        gamma: float | None = None,
        max_decrease: float | None = None,
        delay_gain: float | None = None,
        quick_adapt: bool | None = None,
        quick_adapt_part: float | None = None,
        adjust_packets: float | None = None,
        median_samples: int | None = None,
        receiver_penalty: bool | None = None,
        penalty_from: float | None = None,
        penalty_full: float | None = None,
        restore_window: bool | None = None,
        rto: Time | None = None,
    ) -> None:
        """Set the parameters that are given.

        Args:
            profile: Profile of defaults. "trimming": for switches that trim packets; "drop-tail":
                for switches that drop packets; "median": MNSCC: the median of the last delays, for
                switches that drop packets.
            network_rtt: RTT of a full packet and its acknowledgement over the longest path without
                queues (time, above 0). Default: 12us. From the network in trimming, drop-tail,
                median: the unloaded RTT between the NICs of the longest path.
            target_queueing: queueing delay above which marked packets shrink the window (time,
                above 0). Default in trimming: 9us. Default in drop-tail: 12us. Default in median:
                12us. From the network in trimming: 0.75 network_rtt. From the network in drop-tail,
                median: network_rtt.
            window_factor: first and largest window over line rate times RTT (number, at least 1).
                Default: 1.5.
            proportional: payloads that a window of acknowledgements without delay adds to the
                window, before scaling to the network (number, 0 or more). Default: 4.
            fair: payloads that a window of late but unmarked acknowledgements adds (number, 0 or
                more). Default: 5.
            eta: payloads added once per network_rtt (number, 0 or more). Default: 0.15.
            fast: part of the acknowledged bytes added while nothing queues (number, 0 or more).
                Default: 0.25.
            fast_delay: queueing delay below which nothing queues (time, above 0). Default: 1us.
            gamma: factor of the multiplicative decrease (number, 0 or more). Default: 0.8.
            max_decrease: largest part of the window that one decrease takes (number, above 0 and at
                most 1). Default: 0.5.
            delay_gain: weight of a new sample in the average queueing delay (number, above 0 and at
                most 1). Default: 0.0125.
            quick_adapt: set the window to the bytes received in the last RTT if those are few (true
                or false). Default: true.
            quick_adapt_part: quick adaptation needs fewer bytes received than the largest window
                divided by this (number, at least 1). Default: 8.
            adjust_packets: full packets received after which increases take effect (number, 0 or
                more). Default: 8.
            median_samples: number of delays of which the median is taken; 1 is the delay itself
                (whole number, from 1 to 4). Default in trimming: 1. Default in drop-tail: 1.
                Default in median: 4.
            receiver_penalty: obey receivers whose buffers fill: the window shrinks by up to the
                bytes that are acknowledged (true or false). Default: false.
            penalty_from: filled part of the receiver's buffer from which on it penalises (number,
                above 0 and at most 1). Default: 0.25.
            penalty_full: filled part of the receiver's buffer with the largest penalty (number,
                above 0 and at most 1). Default: 0.75.
            restore_window: after the penalty the window is what it was before (true or false).
                Default: true.
            rto: retransmission timeout, without back-off (time, above 0). Default in trimming:
                100us. Default in drop-tail: 450us. Default in median: 450us. From the network in
                trimming: 15 us and 6 times the time that a BDP, in whole packets, takes on the
                path. From the network in drop-tail, median: 15 us and 6 times the time that 5 BDP,
                in whole packets, take on the path.
        """
        super().__init__(
            "Nscc",
            {"name": "nscc"},
            {},
            {
                "profile": profile,
                "network_rtt": network_rtt,
                "target_queueing": target_queueing,
                "window_factor": window_factor,
                "proportional": proportional,
                "fair": fair,
                "eta": eta,
                "fast": fast,
                "fast_delay": fast_delay,
                "gamma": gamma,
                "max_decrease": max_decrease,
                "delay_gain": delay_gain,
                "quick_adapt": quick_adapt,
                "quick_adapt_part": quick_adapt_part,
                "adjust_packets": adjust_packets,
                "median_samples": median_samples,
                "receiver_penalty": receiver_penalty,
                "penalty_from": penalty_from,
                "penalty_full": penalty_full,
                "restore_window": restore_window,
                "rto": rto,
            },
        )


class Mswift(Algorithm):
    """Algorithm `mswift`.

    Swift on the median of the last delays, for packets on several paths.

    Source: unverified: Gerstein, Silberstein, Keslassy, Congestion Control for Spraying with
    Congested Paths, arXiv 2509.07907.
    """

    def __init__(
        self,
        *,
        profile: Literal["mswift", "lswift"] | None = None,
        median: bool | None = None,
        history: float | None = None,
        late_packets: int | None = None,
        ai: float | None = None,
        beta: float | None = None,
        max_mdf: float | None = None,
        base_target: Time | None = None,
        hop_scale: Time | None = None,
        initial_cwnd: float | None = None,
        max_cwnd: float | None = None,
    ) -> None:
        """Set the parameters that are given.

        Args:
            profile: Profile of defaults. "mswift": the median of the delays of half a window;
                "lswift": the latest delay; cuts after 5 late packets.
            median: whether the delay is the median of the last ones (true or false). Default in
                mswift: true. Default in lswift: false.
            history: delays of which the median is taken, as a part of the window; at least one and
                at most 128 (number, above 0 and at most 1). Default in mswift: 0.5.
            late_packets: late acknowledgements in a row from which on the window may be cut (whole
                number, at least 1). Default: 5.
            ai: additive increment in packets per RTT (number). Default: 1.
            beta: multiplicative decrease constant (number). Default: 0.8.
            max_mdf: largest fraction of the window that one decrease takes away (number). Default:
                0.5.
            base_target: target of the fabric delay for one hop (time). Default: 25us. From the
                network in mswift, lswift: the larger of 25us and, for the longest path, the
                unloaded RTT, the rest of the hosts' jitter and the time of 3 packets on the slowest
                link, without its share of hop scaling.
            hop_scale: target added per switch on the forward path (time). Default: 1us.
            initial_cwnd: first window in packets (number). Default: 16. From the network in mswift,
                lswift: the BDP in packets, at most max_cwnd.
            max_cwnd: largest window in packets (number). Default: 256. From the network in mswift,
                lswift: the larger of 256 packets and 2 BDP.
        """
        super().__init__(
            "Mswift",
            {"name": "mswift"},
            {},
            {
                "profile": profile,
                "median": median,
                "history": history,
                "late_packets": late_packets,
                "ai": ai,
                "beta": beta,
                "max_mdf": max_mdf,
                "base_target": base_target,
                "hop_scale": hop_scale,
                "initial_cwnd": initial_cwnd,
                "max_cwnd": max_cwnd,
            },
        )


class Rccc(Algorithm):
    """Algorithm `rccc`.

    Sends while the receiver grants credit; receivers grant in turns, a little below their rate.

    Source: uet-htsim 40ccb05, after the Ultra Ethernet Specification 1.0 (2025) §3.6.14.
    """

    def __init__(
        self,
        *,
        profile: Literal["credits", "nscc"] | None = None,
        network_rtt: Time | None = None,
        window_factor: float | None = None,
        pace: float | None = None,
        grant_packets: int | None = None,
        window: Literal["none", "nscc"] | None = None,
        target_queueing: Time | None = None,
        regulated: bool | None = None,
        rto: Time | None = None,
    ) -> None:
        """Set the parameters that are given.

        Args:
            profile: Profile of defaults. "credits": credits alone; "nscc": credits, and the window
                of NSCC.
            network_rtt: RTT of a full packet and its acknowledgement over the longest path without
                queues (time, above 0). Default: 12us. From the network in credits, nscc: the
                unloaded RTT between the NICs of the longest path.
            window_factor: most credit, also that of a flow that begins, over line rate times RTT
                (number, at least 1). Default: 1.5.
            pace: part of its line rate at which a host grants (number, above 0 and at most 1).
                Default: 0.99.
            grant_packets: payloads of full packets that a turn grants (whole number, at least 1).
                Default: 4.
            window: "nscc": packets in flight are limited by NSCC's window too, for which packets
                trimmed at the last hop do not count ("none", "nscc"). Default in credits: none.
                Default in nscc: nscc.
            target_queueing: with `window = "nscc"`: queueing delay above which marked packets
                shrink the window (time, above 0). Default: 9us. From the network in nscc: 0.75
                network_rtt with switches that trim, network_rtt with others.
            regulated: lower the rate of grants by marks, and by trims before the last hop: for
                networks with less capacity within than at hosts (true or false). Default: false.
            rto: retransmission timeout, without back-off; after it a sender without credit asks for
                some (time, above 0). Default: 100us. From the network in credits, nscc: 15 us and 6
                times the time that a BDP, in whole packets, takes on the path; 5 BDPs with switches
                that do not trim.
        """
        super().__init__(
            "Rccc",
            {"name": "rccc"},
            {},
            {
                "profile": profile,
                "network_rtt": network_rtt,
                "window_factor": window_factor,
                "pace": pace,
                "grant_packets": grant_packets,
                "window": window,
                "target_queueing": target_queueing,
                "regulated": regulated,
                "rto": rto,
            },
        )


class Constant(Algorithm):
    """Algorithm `constant`.

    A constant window or rate: no congestion control, for tests and as a baseline.

    Source: none.
    """

    def __init__(
        self,
        *,
        profile: Literal["constant", "rate"] | None = None,
        window: float | None = None,
        rate: Rate | None = None,
        rto_gain: float | None = None,
        rto_multiplier: float | None = None,
        min_rto: Time | None = None,
        initial_rto: Time | None = None,
    ) -> None:
        """Set the parameters that are given.

        Args:
            profile: Profile of defaults. "constant": a window of packets, clocked by ACKs; "rate":
                a rate, independent of the packets in flight.
            window: window in packets (number, at least 1). Default in constant: 1.
            rate: rate of wire bytes at which the flow is paced, independent of the packets in
                flight (rate, above 0). Default in rate: 1Gbps.
            rto_gain: weight of a new sample in the smoothed end-to-end RTT (number, above 0 and at
                most 1). Default: 0.25.
            rto_multiplier: retransmission timeout over smoothed RTT (number, at least 1). Default:
                2.
            min_rto: shortest retransmission timeout (time, above 0). Default: 1ms.
            initial_rto: retransmission timeout before the first RTT sample (time, above 0).
                Default: 1ms.
        """
        super().__init__(
            "Constant",
            {"name": "constant"},
            {},
            {
                "profile": profile,
                "window": window,
                "rate": rate,
                "rto_gain": rto_gain,
                "rto_multiplier": rto_multiplier,
                "min_rto": min_rto,
                "initial_rto": initial_rto,
            },
        )
