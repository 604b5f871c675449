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

    AIMD on the delay, relative to a target that scales with hops and flows.

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
        max_rto: Time | None = None,
    ) -> None:
        """Set the parameters that are given.

        Args:
            profile: Profile of defaults. "paper": Algorithm 1 with a fabric and an endpoint window;
                "falcon": as in Google's Falcon simulator, with a receiver-buffer window and changes
                of the path.
            ai: additive increase in packets per RTT (number). Default: 1.
            beta: multiplicative decrease constant (number). Default: 0.8.
            max_mdf: largest fraction by which one decrease reduces the window (number). Default:
                0.5.
            base_target: base target of the fabric delay, before hop and flow scaling; of the
                end-to-end delay if `decompose` is false (time). Default: 25us. From the network in
                paper, falcon: the larger of 25us and the following value for the longest path: the
                unloaded RTT, plus the hosts' jitter above its mean, plus the time of 3 packets on
                the slowest link, minus the hop scaling.
            hop_scale: amount added to the target per switch on the forward path (time). Default in
                paper: 1us. Default in falcon: 1.05us.
            fs_range: largest amount that flow scaling adds to the target; `0us` turns flow scaling
                off (time). Default: 100us.
            fs_min_cwnd: window in packets at or below which flow scaling adds all of fs_range
                (number). Default in paper: 0.01. Default in falcon: 0.1.
            fs_max_cwnd: window in packets at or above which flow scaling adds nothing (number).
                Default in paper: 100. Default in falcon: 256.
            min_cwnd: smallest window in packets (number). Default in paper: 0.001. Default in
                falcon: 0.01.
            max_cwnd: largest value of each window, in packets; it bounds the window that is not the
                bottleneck (number). Default: 256. From the network in paper, falcon: the larger of
                256 packets and 2 BDP.
            initial_cwnd: initial window in packets (number). Default: 1.
            decompose: whether there are two windows, for the fabric and the endpoint delay; `false`
                is Swift-v0, with one window for the end-to-end delay (true or false). Default in
                paper: true.
            endpoint_target: target of the endpoint delay (time). Default in paper: 100us.
            endpoint_min_cwnd: smallest endpoint window in packets, if larger than min_cwnd; 0:
                min_cwnd applies (number). Default in paper: 0.
            endpoint_gain: weight of a new sample in the average of the endpoint delay (number).
                Default in paper: 0.5.
            buffer_target: target fill level of the receiver's buffer, in 32nds (whole number).
                Default in falcon: 15.
            buffer_increase: packets added to the receiver-buffer window per ACK with a fill level
                below the target (number). Default in falcon: 1.
            pacing: when packets leave RTT/cwnd apart: with windows below one packet, or always
                ("below-one", "always"). Default: below-one.
            max_pacing_delay: longest delay between two packets of a paced flow (time). Default: 1s.
            retx_reset_threshold: number of consecutive timeouts from which the window falls to its
                minimum (whole number). Default: 3.
            max_decrease_on_loss: whether a loss detected by SACK cuts the window by max_mdf (true
                or false). Default in paper: true. Default in falcon: false.
            plb_delay_factor: multiple of the target delay; a packet with a longer delay counts as
                delayed (number). Default in falcon: 1.01.
            plb_delayed_fraction: fraction of delayed packets at or above which a round counts as
                delayed (number). Default in falcon: 0.5.
            plb_rounds: number of consecutive delayed rounds after which the flow changes its path
                (whole number). Default in falcon: 5.
            rto_gain: weight of a new sample in the smoothed end-to-end RTT (number, above 0 and at
                most 1). Default in paper: 0.25. Default in falcon: 0.25.
            rto_multiplier: retransmission timeout over smoothed RTT (number, at least 1). Default
                in paper: 2. Default in falcon: 2.
            min_rto: shortest retransmission timeout (time, above 0). Default in paper: 1ms. Default
                in falcon: 250us.
            initial_rto: retransmission timeout before the first RTT sample (time, above 0). Default
                in paper: 1ms. Default in falcon: 250us.
            max_rto: longest retransmission timeout that follows from the RTT; pacing below one
                packet adds its delay (time, above 0). Default: 1s.
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
                "max_rto": max_rto,
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
        max_rto: Time | None = None,
    ) -> None:
        """Set the parameters that are given.

        Args:
            profile: Profile of defaults. "rfc8257": as in RFC 8257; "gcn": Google's variant, which
                cuts by the mark rate of the current window.
            g: weight of the newest window of data in the estimate of the marked fraction (number,
                above 0 and at most 1). Default in rfc8257: 0.0625. Default in gcn: 1.
            initial_alpha: estimate of the marked fraction until the first window of data has been
                acknowledged (number, between 0 and 1). Default: 1.
            reaction: "per-window": as in RFC 8257. "per-packet": each marked packet reduces the
                window by a quarter of a packet, and each trimmed, lost or timed-out packet by a
                whole one; a window of unmarked packets increases it by one ("per-window",
                "per-packet"). Default: per-window.
            initial_cwnd: initial window in packets (number). Default: 10.
            min_cwnd: smallest window in packets, and the window after a timeout (number, at least
                1). Default: 1.
            max_cwnd: largest window in packets (number). Default: 256. From the network in rfc8257,
                gcn: the larger of 256 packets and 2 BDP.
            rto_gain: weight of a new sample in the smoothed end-to-end RTT (number, above 0 and at
                most 1). Default: 0.25.
            rto_multiplier: retransmission timeout over smoothed RTT (number, at least 1). Default:
                2.
            min_rto: shortest retransmission timeout (time, above 0). Default: 1ms.
            initial_rto: retransmission timeout before the first RTT sample (time, above 0).
                Default: 1ms.
            max_rto: longest retransmission timeout that follows from the RTT; pacing below one
                packet adds its delay (time, above 0). Default: 1s.
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
                "max_rto": max_rto,
            },
        )


class Bolt(Algorithm):
    """Algorithm `bolt`.

    Switches signal queues to the source at once, and hand out bandwidth that is about to become
    free.

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
        max_rto: Time | None = None,
    ) -> None:
        """Set the parameters that are given.

        Args:
            profile: Profile of defaults. "paper": Algorithms 1 to 4; "code": as in the authors'
                simulator, which produced the figures.
            initial_cwnd: initial window in packets (number). Default: 64. From the network in
                paper, code: 1 BDP, within min_cwnd and max_cwnd.
            min_cwnd: smallest window in packets; below 1 only with `below_one = "halve"` (number).
                Default in paper: 1. Default in code: 0.01.
            max_cwnd: largest window in packets (number). Default: 4096.
            below_one: effect of an SRC on a window of at most one packet. `hold`: none. `halve`:
                every SRC halves the window, and packets are paced; a larger window then loses a
                whole packet, so that a fraction of a packet may remain ("hold", "halve"). Default
                in paper: hold. Default in code: halve.
            rate: rate of a flow in the reaction factor: the window over the latest RTT, limited by
                the rate of the host's link (`line`) or without this limit (`window`) ("line",
                "window"). Default in paper: line. Default in code: window.
            pacing: which packets leave RTT/cwnd after the previous one. `below-one`: packets of
                windows below one packet. `rest`: also packets that fit only partly into the window.
                `always`: all packets after the first RTT ("below-one", "rest", "always"). Default
                in paper: below-one. Default in code: rest.
            ai: packets added to the window once per RTT (number, 0 or more). Default: 1.
            validate_window: whether the window grows only while it limits the flow (true or false).
                Default in paper: true. Default in code: false.
            first: which packets carry FIRST: those sent before a window of bytes has been sent
                (`bytes`), or all until the first ACK (`unacknowledged`) ("bytes",
                "unacknowledged"). Default in paper: bytes. Default in code: unacknowledged.
            last: which packets carry LAST: those after which less than a window remains to be sent
                (`after`), or those with which at most a window remains (`with`) ("after", "with").
                Default in paper: after. Default in code: with.
            inc: which packets request a larger window: all (`every`), or those with neither FIRST
                nor LAST (`continuing`) ("every", "continuing"). Default in paper: every. Default in
                code: continuing.
            idle_reset: whether data sent after an idle RTT counts as a first window again (true or
                false). Default: true.
            cc_threshold: queue at or above which a port is congested, in packets of full size
                (number, 0 or more). Default in paper: 1. Default in code: 2.
            uncounted_packets: number of packets of full size that are subtracted from the queue of
                a port (number, 0 or more). Default in paper: 0. Default in code: 1.
            pru: whether switches hand out PRU tokens (true or false). Default: true.
            sm: whether switches hand out SM tokens (true or false). Default: true.
            sm_counts: which packets count as demand for supply matching: data packets (`data`), or
                all packets (`all`) ("data", "all"). Default in paper: data. Default in code: all.
            sm_supply: supply of a class in supply matching if several classes share a port: its
                share of the link by weight among the classes with packets (`weighted`, Alg. 4), or
                the whole link (`link`, Alg. 3) ("weighted", "link"). Default: weighted.
            pru_cap: largest number of PRU tokens that a port holds; 0: no limit (whole number).
                Default in paper: 0. Default in code: 256.
            favoured: whether the flow has high priority; switches then send its SRCs with
                `src_probability` (true or false). Default: false.
            src_probability: probability that a congested switch sends an SRC that is due to a
                favoured flow (number, between 0 and 1). Default: 1.
            max_mdf: fraction by which a loss reduces the window, once per RTT (number, above 0 and
                at most 1). Default: 0.5.
            fallback: whether Swift runs in parallel and the smaller window applies ("none",
                "swift"). Default: none.
            fallback_base_target: Swift's base target in the fallback (time). Default: 25us. From
                the network in paper, code: the larger of 25us and the following value for the
                longest path: the unloaded RTT, plus the hosts' jitter above its mean, plus the time
                of 3 packets on the slowest link, minus the hop scaling.
            fallback_fs_range: range of Swift's flow scaling in the fallback (time). Default: 100us.
            fallback_fs_min_cwnd: window at or below which the flow scaling of the fallback adds all
                of its range (number). Default: 0.01.
            fallback_fs_max_cwnd: window at or above which the flow scaling of the fallback adds
                nothing (number). Default: 100.
            rto_gain: weight of a new sample in the smoothed end-to-end RTT (number, above 0 and at
                most 1). Default: 0.25.
            rto_multiplier: retransmission timeout over smoothed RTT (number, at least 1). Default:
                2.
            min_rto: shortest retransmission timeout (time, above 0). Default: 1ms.
            initial_rto: retransmission timeout before the first RTT sample (time, above 0).
                Default: 1ms.
            max_rto: longest retransmission timeout that follows from the RTT; pacing below one
                packet adds its delay (time, above 0). Default: 1s.
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
                "max_rto": max_rto,
            },
        )


class Hpcc(Algorithm):
    """Algorithm `hpcc`.

    Sets the window from the bytes in flight of each link, which follow from the telemetry that
    switches add to packets.

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
        max_rto: Time | None = None,
    ) -> None:
        """Set the parameters that are given.

        Args:
            profile: Profile of defaults. "paper": Algorithm 1; "bolt": as the authors of Bolt ran
                it, with the packet sizes of HPCC's simulator.
            base_rtt: T: the largest base RTT of the network; the initial window is T times the rate
                of the host (time, above 0). Default in paper: 13us. Default in bolt: 8us. From the
                network in paper, bolt: the unloaded RTT of the longest path.
            eta: target utilisation (number, above 0 and at most 1). Default: 0.95.
            max_stage: number of RTTs of additive increase before a multiplicative adjustment (whole
                number). Default in paper: 5. Default in bolt: 0.
            additive_rate: additive increase W_AI as a rate: W_AI is this rate times base_rtt
                (rate). Default in paper: 50Mbps. Default in bolt: 50Mbps. From the network in
                paper: line rate * (1 - eta) / 100.
            min_rate: smallest window, as a rate: the window is at least this rate times base_rtt
                (rate, above 0). Default: 100Mbps.
            rto_gain: weight of a new sample in the smoothed end-to-end RTT (number, above 0 and at
                most 1). Default: 0.25.
            rto_multiplier: retransmission timeout over smoothed RTT (number, at least 1). Default:
                2.
            min_rto: shortest retransmission timeout (time, above 0). Default: 1ms.
            initial_rto: retransmission timeout before the first RTT sample (time, above 0).
                Default: 1ms.
            max_rto: longest retransmission timeout that follows from the RTT; pacing below one
                packet adds its delay (time, above 0). Default: 1s.
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
                "max_rto": max_rto,
            },
        )


class ExpressPass(Algorithm):
    """Algorithm `expresspass`.

    Sends one packet per credit from the receiver; ports limit the rate of credits.

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
        max_rto: Time | None = None,
    ) -> None:
        """Set the parameters that are given.

        Args:
            profile: Profile of defaults. "code": the feedback control of the authors' simulator;
                "paper": the paper's feedback control (unverified); "code-2018": the authors'
                simulator since April 2018: the initial rate grows with the amount of data to send,
                and credits are stopped early.
            feedback: whether the credit rate follows the loss of credits; if not, the receiver
                sends credits at the rate at which their data fills the line (true or false).
                Default: true.
            alpha: initial credit rate as a fraction of the largest rate (number, above 0 and at
                most 1). Default: 0.5.
            alpha_packets: number of packets to send from which the initial credit rate is `alpha`;
                with fewer packets, it is proportionally lower. 0: always `alpha` (whole number).
                Default in paper: 0. Default in code: 0. Default in code-2018: 40.
            w_init: initial aggressiveness factor (number). Default in paper: 0.5. Default in code:
                0.5. Default in code-2018: 0.0625.
            w_min: smallest aggressiveness factor (number, above 0 and at most 1). Default: 0.01.
            w_max: largest aggressiveness factor (number, above 0 and at most 1). Default: 0.5.
            target_loss: target of the credit loss; in `code` and `code-2018`, the largest value of
                this target (number, at least 0 and below 1). Default in paper: 0.1. Default in
                code: 0.125. Default in code-2018: 0.125.
            jitter: random variation of the gap between two credits: up to this fraction of the gap,
                in either direction (number, at least 0 and below 1). Default: 0.1.
            random_sizes: whether the sizes of credits vary, by up to 8 B around the nominal size
                (true or false). Default: true.
            credit_burst: number of credits that a port forwards at once: the size of its token
                bucket (whole number, at least 1). Default: 2.
            credit_queue: largest number of credits in the queue of a port (whole number, at least
                1). Default: 8.
            credit_queue_counts: unit in which a port limits its queue of credits; "bytes": the
                limit is the size of `credit_queue` credits of nominal size ("credits", "bytes").
                Default: credits.
            stop: when the sender stops the credits. "last-data": after its last packet.
                "wasted-credit": when a credit finds no data. "early": when at least as many credits
                arrived in the last RTT as packets remain, since as many credits may be in flight
                ("last-data", "wasted-credit", "early"). Default in paper: wasted-credit. Default in
                code: last-data. Default in code-2018: early.
            request_timeout: time after which a sender with data and without credit requests credit
                again, and a sender whose stop is not answered sends the stop again (time, above 0).
                Default: 10ms. From the network in paper, code, code-2018: the larger of 10ms and
                twice the time of 2048 full packets on the slowest link of the longest path.
            idle_timeout: time without data after which a receiver stops sending credits (time,
                above 0). Default: 100ms.
            rto_gain: weight of a new sample in the smoothed end-to-end RTT (number, above 0 and at
                most 1). Default: 0.25.
            rto_multiplier: retransmission timeout over smoothed RTT (number, at least 1). Default:
                2.
            min_rto: shortest retransmission timeout (time, above 0). Default: 100ms.
            initial_rto: retransmission timeout before the first RTT sample (time, above 0).
                Default: 100ms.
            max_rto: longest retransmission timeout that follows from the RTT; pacing below one
                packet adds its delay (time, above 0). Default: 1s.
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
                "max_rto": max_rto,
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
        max_rto: Time | None = None,
    ) -> None:
        """Set the parameters that are given.

        Args:
            profile: Profile of defaults. "rfc9438": as in RFC 9438.
            c: C: growth of the curve, in packets per cubic second (number, above 0). Default: 0.4.
            beta: beta_cubic: factor by which a congestion event multiplies the window (number,
                above 0 and below 1). Default: 0.7.
            fast_convergence: whether the flow leaves room for new flows when its window at losses
                decreases (true or false). Default: true.
            ecn: whether packets are ECN-capable; a mark then counts as a congestion event (true or
                false). Default: false.
            initial_cwnd: initial window in packets (number). Default: 10.
            max_cwnd: largest window in packets (number). Default: 65536.
            rto_gain: weight of a new sample in the smoothed end-to-end RTT (number, above 0 and at
                most 1). Default: 0.25.
            rto_multiplier: retransmission timeout over smoothed RTT (number, at least 1). Default:
                2.
            min_rto: shortest retransmission timeout (time, above 0). Default: 1ms.
            initial_rto: retransmission timeout before the first RTT sample (time, above 0).
                Default: 1ms.
            max_rto: longest retransmission timeout that follows from the RTT; pacing below one
                packet adds its delay (time, above 0). Default: 1s.
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
                "max_rto": max_rto,
            },
        )


class Timely(Algorithm):
    """Algorithm `timely`.

    Adapts a rate to the gradient of the RTT while the RTT is between two thresholds.

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
        max_rto: Time | None = None,
    ) -> None:
        """Set the parameters that are given.

        Args:
            profile: Profile of defaults. "paper": TIMELY's Algorithm 1; "patched": Patched TIMELY:
                the decrease depends on the distance from a target RTT.
            t_low: RTT below which the rate grows, whatever the gradient (time). Default: 50us. From
                the network in paper, patched: 2.5 times min_rtt, at most t_high.
            t_high: RTT above which the rate falls, whatever the gradient (time). Default: 500us.
                From the network in paper, patched: 25 times min_rtt, at least t_low.
            t_ref: reference RTT of the patched decrease (time, above 0). Default in patched: 50us.
                From the network in patched: t_low.
            min_rtt: D_minRTT: divisor of the gradient, and minimum time between two changes of the
                rate (time, above 0). Default: 20us. From the network in paper, patched: the
                unloaded RTT of the longest path.
            delta: additive increase of the rate (rate, above 0). Default: 10Mbps.
            alpha: weight of a new RTT difference in the average difference (number, above 0 and at
                most 1). Default: 0.875.
            beta: multiplicative decrease factor (number, above 0 and at most 1). Default in paper:
                0.8. Default in patched: 0.008.
            hai_thresh: number of consecutive rate changes without a positive gradient after which
                the increase is five times as large (whole number, at least 1). Default in paper: 5.
            segment: payload bytes whose acknowledgement is a completion event (size, above 0).
                Default: 16KiB.
            initial_share: initial rate as a fraction of the line rate of the host (number, above 0
                and at most 1). Default: 0.1.
            min_rate: smallest rate (rate, above 0). Default: 10Mbps.
            rto_gain: weight of a new sample in the smoothed end-to-end RTT (number, above 0 and at
                most 1). Default: 0.25.
            rto_multiplier: retransmission timeout over smoothed RTT (number, at least 1). Default:
                2.
            min_rto: shortest retransmission timeout (time, above 0). Default: 1ms.
            initial_rto: retransmission timeout before the first RTT sample (time, above 0).
                Default: 1ms.
            max_rto: longest retransmission timeout that follows from the RTT; pacing below one
                packet adds its delay (time, above 0). Default: 1s.
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
                "max_rto": max_rto,
            },
        )


class Dx(Algorithm):
    """Algorithm `dx`.

    Grows the window while queues are empty, and shrinks it in proportion to the queueing delay.

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
        max_rto: Time | None = None,
    ) -> None:
        """Set the parameters that are given.

        Args:
            profile: Profile of defaults. "paper": §4 of the paper.
            ai: packets added to the window in an RTT without queueing (number, above 0). Default:
                1.
            headroom: average queueing delay up to which the queues count as empty (time). Default:
                1us.
            slow_start: whether the window doubles per RTT until the first queueing delay or loss
                (true or false). Default: true.
            initial_cwnd: initial window in packets (number). Default: 10.
            min_cwnd: smallest window in packets (number, at least 1). Default: 1.
            max_cwnd: largest window in packets (number). Default: 65536.
            rto_gain: weight of a new sample in the smoothed end-to-end RTT (number, above 0 and at
                most 1). Default: 0.25.
            rto_multiplier: retransmission timeout over smoothed RTT (number, at least 1). Default:
                2.
            min_rto: shortest retransmission timeout (time, above 0). Default: 1ms.
            initial_rto: retransmission timeout before the first RTT sample (time, above 0).
                Default: 1ms.
            max_rto: longest retransmission timeout that follows from the RTT; pacing below one
                packet adds its delay (time, above 0). Default: 1s.
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
                "max_rto": max_rto,
            },
        )


class Dcqcn(Algorithm):
    """Algorithm `dcqcn`.

    Cuts a rate when the receiver reports marks, and raises it by a timer and a byte counter.

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
        max_rto: Time | None = None,
    ) -> None:
        """Set the parameters that are given.

        Args:
            profile: Profile of defaults. "paper": §3.1 with the values of §5.
            g: weight of a notification in alpha, the estimate of congestion (number, above 0 and at
                most 1). Default: 0.00390625.
            alpha_timer: alpha falls once in each period of this length without a notification
                (time, above 0). Default: 55us.
            timer: T: period of the timer; the rate rises once per period (time, above 0). Default:
                55us.
            byte_counter: B: period of the byte counter, in wire bytes sent; the rate rises once per
                period (size, above 0). Default: 10MB.
            f: F: number of increases by fast recovery. If the timer or the byte counter has caused
                more than F increases, the next one is additive; if both have, it is a hyper
                increase (whole number). Default: 5.
            r_ai: additive increase of the target rate (rate, above 0). Default: 40Mbps.
            r_hai: hyper increase of the target rate (rate). Default: 400Mbps.
            min_rate: smallest rate (rate, above 0). Default: 10Mbps.
            cnp_interval: N: minimum time between two notifications of a receiver to the sender of a
                flow (time). Default: 50us.
            k_min: queue of a switch port above which packets are marked, with a rising probability
                (size). Default: 5kB. From the network in paper: 5kB * line rate / 40Gbps, at most
                k_max.
            k_max: queue of a switch port above which every packet is marked (size). Default: 200kB.
                From the network in paper: 200kB * line rate / 40Gbps, at least k_min.
            p_max: probability of a mark if the queue is k_max (number, above 0 and at most 1).
                Default: 0.01.
            rto_gain: weight of a new sample in the smoothed end-to-end RTT (number, above 0 and at
                most 1). Default: 0.25.
            rto_multiplier: retransmission timeout over smoothed RTT (number, at least 1). Default:
                2.
            min_rto: shortest retransmission timeout (time, above 0). Default: 1ms.
            initial_rto: retransmission timeout before the first RTT sample (time, above 0).
                Default: 1ms.
            max_rto: longest retransmission timeout that follows from the RTT; pacing below one
                packet adds its delay (time, above 0). Default: 1s.
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
                "max_rto": max_rto,
            },
        )


class Rcp(Algorithm):
    """Algorithm `rcp`.

    Paces at the smallest of the rates that the ports on its path offer to every flow.

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
        max_rto: Time | None = None,
    ) -> None:
        """Set the parameters that are given.

        Args:
            profile: Profile of defaults. "paper": with the constants of ns-2.
            alpha: gain of the spare capacity (number, above 0 and below 2). Default: 0.4.
            beta: gain of the queue (number, above 0 and below 2). Default: 0.4.
            initial_rate: initial rate of a port as a fraction of the rate of its link (number,
                above 0 and at most 1). Default: 0.05.
            rtt_gain: weight of the RTT of a packet in the average RTT of a port (number, above 0
                and at most 1). Default: 0.02.
            initial_rtt: average RTT of a port before any packet has stated its RTT (time, above 0).
                Default: 50us. From the network in paper: the unloaded RTT of the longest path.
            rto_gain: weight of a new sample in the smoothed end-to-end RTT (number, above 0 and at
                most 1). Default: 0.25.
            rto_multiplier: retransmission timeout over smoothed RTT (number, at least 1). Default:
                2.
            min_rto: shortest retransmission timeout (time, above 0). Default: 1ms.
            initial_rto: retransmission timeout before the first RTT sample (time, above 0).
                Default: 1ms.
            max_rto: longest retransmission timeout that follows from the RTT; pacing below one
                packet adds its delay (time, above 0). Default: 1s.
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
                "max_rto": max_rto,
            },
        )


class Hull(Algorithm):
    """Algorithm `hull`.

    DCTCP with marks by phantom queues, which keep a part of each link unused, and with pacing.

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
        max_rto: Time | None = None,
    ) -> None:
        """Set the parameters that are given.

        Args:
            profile: Profile of defaults. "paper": with the paper's constants.
            gamma: rate at which a phantom queue drains, as a fraction of the rate of its link
                (number, above 0 and at most 1). Default: 0.95.
            threshold_per_gbps: bytes in a phantom queue above which it marks packets, per Gb/s of
                its link (size). Default: 1kB.
            pacing: whether flows that see marks are paced (true or false). Default: true.
            pacer_probability: probability that an acknowledgement with a mark starts the pacing of
                its flow (number, above 0 and at most 1). Default: 0.125.
            pacer_timeout: time for which the flow is then paced (time, above 0). Default: 10ms.
            pacer_interval: T_r: interval at which the pacing rate is computed (time, above 0).
                Default: 64us.
            pacer_eta: weight of the newest interval in the pacing rate (number, above 0 and at most
                1). Default: 0.125.
            pacer_beta: increase of the pacing rate per backlog, in kb/s per byte (number, above 0).
                Default: 16.
            g: weight of the newest window of data in the estimate of the marked fraction (number,
                above 0 and at most 1). Default: 0.0625.
            initial_alpha: estimate of the marked fraction until the first window of data has been
                acknowledged (number, between 0 and 1). Default: 1.
            initial_cwnd: initial window in packets (number). Default: 10.
            min_cwnd: smallest window in packets, and the window after a timeout (number, at least
                1). Default: 1.
            max_cwnd: largest window in packets (number). Default: 256. From the network in paper:
                the larger of 256 packets and 2 BDP.
            rto_gain: weight of a new sample in the smoothed end-to-end RTT (number, above 0 and at
                most 1). Default: 0.25.
            rto_multiplier: retransmission timeout over smoothed RTT (number, at least 1). Default:
                2.
            min_rto: shortest retransmission timeout (time, above 0). Default: 1ms.
            initial_rto: retransmission timeout before the first RTT sample (time, above 0).
                Default: 1ms.
            max_rto: longest retransmission timeout that follows from the RTT; pacing below one
                packet adds its delay (time, above 0). Default: 1s.
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
                "max_rto": max_rto,
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
        max_rto: Time | None = None,
    ) -> None:
        """Set the parameters that are given.

        Args:
            profile: Profile of defaults. "study": Bolt Fig. 2: Swift's reaction.
            base_rtt: RTT without queues; together with the time that the reported queue takes, it
                is the RTT that the packet will observe (time, above 0). Default: 8us. From the
                network in study: the unloaded RTT of the longest path.
            delay: delay of the reaction, counted from `point` (time). Default: 0us.
            point: whether the delay counts from the arrival of the packet at the queue (`arrival`),
                or from the time at which the link has sent the queue in front of it (`departure`)
                ("arrival", "departure"). Default: arrival.
            reaction: Swift's Algorithm 1 (`swift`), or division of the window by the load, once per
                RTT (`ideal`) ("swift", "ideal"). Default: swift.
            initial_cwnd: initial window in packets (number, at least 1). Default: 66. From the
                network in study: 1 BDP.
            base_target: Swift's base target (time). Default: 6us.
            fs_range: largest amount that Swift's flow scaling adds to the target (time). Default:
                100us.
            fs_min_cwnd: window at or below which flow scaling adds all of its range (number).
                Default: 0.1.
            fs_max_cwnd: window at or above which flow scaling adds nothing (number). Default: 256.
            rto_gain: weight of a new sample in the smoothed end-to-end RTT (number, above 0 and at
                most 1). Default: 0.25.
            rto_multiplier: retransmission timeout over smoothed RTT (number, at least 1). Default:
                2.
            min_rto: shortest retransmission timeout (time, above 0). Default: 1ms.
            initial_rto: retransmission timeout before the first RTT sample (time, above 0).
                Default: 1ms.
            max_rto: longest retransmission timeout that follows from the RTT; pacing below one
                packet adds its delay (time, above 0). Default: 1s.
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
                "max_rto": max_rto,
            },
        )


class Nscc(Algorithm):
    """Algorithm `nscc`.

    Starts at line rate, then reacts to marks, queueing delay and trimmed packets.

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
                for switches that drop packets; "median": MNSCC: the median of the latest delays,
                for switches that drop packets.
            network_rtt: RTT of a full packet and its acknowledgement over the longest path without
                queues (time, above 0). Default: 12us. From the network in trimming, drop-tail,
                median: the unloaded RTT between the NICs of the longest path.
            target_queueing: queueing delay above which marked packets shrink the window (time,
                above 0). Default in trimming: 9us. Default in drop-tail: 12us. Default in median:
                12us. From the network in trimming: 0.75 network_rtt. From the network in drop-tail,
                median: network_rtt.
            window_factor: initial and largest window, as a multiple of line rate times RTT (number,
                at least 1). Default: 1.5.
            proportional: payloads that a window of acknowledgements without queueing delay adds to
                the window, before scaling to the network (number, 0 or more). Default: 4.
            fair: payloads that a window of late but unmarked acknowledgements adds to the window,
                before scaling to the network (number, 0 or more). Default: 5.
            eta: payloads added to the window once per network_rtt, before scaling to the network
                (number, 0 or more). Default: 0.15.
            fast: fraction of the acknowledged bytes that is added to the window while queues are
                empty, before scaling to the network (number, 0 or more). Default: 0.25.
            fast_delay: queueing delay below which queues count as empty (time, above 0). Default:
                1us.
            gamma: factor of the multiplicative decrease (number, 0 or more). Default: 0.8.
            max_decrease: largest fraction by which one decrease reduces the window (number, above 0
                and at most 1). Default: 0.5.
            delay_gain: weight of a new sample in the average queueing delay (number, above 0 and at
                most 1). Default: 0.0125.
            quick_adapt: whether the window is set to the bytes received in the last RTT if these
                are few, and a packet was trimmed or had a delay above 4 times target_queueing (true
                or false). Default: true.
            quick_adapt_part: quick adaptation needs fewer bytes received than the largest window
                divided by this (number, at least 1). Default: 8.
            adjust_packets: number of full packets received after which increases take effect,
                unless network_rtt passes first (number, 0 or more). Default: 8.
            median_samples: largest number of latest delays whose median is used; 1: the latest
                delay itself (whole number, from 1 to 4). Default in trimming: 1. Default in
                drop-tail: 1. Default in median: 4.
            receiver_penalty: whether the flow obeys receivers whose buffers fill: each
                acknowledgement then shrinks the window by up to the acknowledged bytes (true or
                false). Default: false.
            penalty_from: filled fraction of the receiver's buffer above which the penalty begins
                (number, above 0 and at most 1). Default: 0.25.
            penalty_full: filled fraction of the receiver's buffer at which the penalty is largest
                (number, above 0 and at most 1). Default: 0.75.
            restore_window: whether the window returns to its previous value after the penalty (true
                or false). Default: true.
            rto: retransmission timeout, without back-off (time, above 0). Default in trimming:
                100us. Default in drop-tail: 450us. Default in median: 450us. From the network in
                trimming: 15 us plus 6 times the time that a BDP, rounded up to whole packets, takes
                on the path. From the network in drop-tail, median: 15 us plus 6 times the time that
                5 BDPs, each rounded up to whole packets, take on the path.
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

    Swift with the median of the latest delays, for flows whose packets take several paths.

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
                "lswift": the latest delay; cuts after 5 consecutive late packets.
            median: whether the delay is the median of the latest delays (true or false). Default in
                mswift: true. Default in lswift: false.
            history: number of latest delays whose median is used, as a fraction of the window; at
                least one delay and at most 128 (number, above 0 and at most 1). Default in mswift:
                0.5.
            late_packets: number of consecutive late acknowledgements from which the window may be
                cut (whole number, at least 1). Default: 5.
            ai: additive increase in packets per RTT (number). Default: 1.
            beta: multiplicative decrease constant (number). Default: 0.8.
            max_mdf: largest fraction by which one decrease reduces the window (number). Default:
                0.5.
            base_target: base target of the fabric delay, before hop scaling (time). Default: 25us.
                From the network in mswift, lswift: the larger of 25us and the following value for
                the longest path: the unloaded RTT, plus the hosts' jitter above its mean, plus the
                time of 3 packets on the slowest link, minus the hop scaling.
            hop_scale: amount added to the target per switch on the forward path (time). Default:
                1us.
            initial_cwnd: initial window in packets (number). Default: 16. From the network in
                mswift, lswift: the BDP in packets, at most max_cwnd.
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

    Sends only with credit from the receiver, which grants credit to its flows in turn, slightly
    below its line rate.

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
            profile: Profile of defaults. "credits": only credits; "nscc": credits and the
                congestion window of NSCC.
            network_rtt: RTT of a full packet and its acknowledgement over the longest path without
                queues (time, above 0). Default: 12us. From the network in credits, nscc: the
                unloaded RTT between the NICs of the longest path.
            window_factor: largest credit of a flow, which is also its initial credit, as a multiple
                of line rate times RTT (number, at least 1). Default: 1.5.
            pace: fraction of its line rate at which a host grants credit (number, above 0 and at
                most 1). Default: 0.99.
            grant_packets: credit granted per turn, in payloads of full packets (whole number, at
                least 1). Default: 4.
            window: "nscc": the congestion window of NSCC limits the packets in flight too; packets
                trimmed at the last hop do not reduce this window ("none", "nscc"). Default in
                credits: none. Default in nscc: nscc.
            target_queueing: with `window = "nscc"`: queueing delay above which marked packets
                shrink the window (time, above 0). Default: 9us. From the network in nscc: 0.75
                network_rtt if switches trim, otherwise network_rtt.
            regulated: whether marks, and trims before the last hop, lower the rate of grants: for
                networks with less capacity inside than at hosts (true or false). Default: false.
            rto: retransmission timeout, without back-off; after this time, a sender without credit
                requests credit (time, above 0). Default: 100us. From the network in credits, nscc:
                15 us plus 6 times the time that a BDP, rounded up to whole packets, takes on the
                path; 5 BDPs if switches do not trim.
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

    A constant window or rate, without congestion control, for tests and as a baseline.

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
        max_rto: Time | None = None,
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
            max_rto: longest retransmission timeout that follows from the RTT; pacing below one
                packet adds its delay (time, above 0). Default: 1s.
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
                "max_rto": max_rto,
            },
        )
