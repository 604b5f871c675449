/* Swift by itself: a sender of some other stack, through a bottleneck of 10 Gb/s.
 *
 * The bottleneck is a formula: what is in flight beyond its capacity waits. A real stack has
 * timestamps t1 to t6 in place of it. */
#include <apus.h>
#include <stdio.h>
#include <stdlib.h>

static void check(int status)
{
    if (status != APUS_OK) {
        fprintf(stderr, "status %d: %s\n", status, apus_last_error());
        exit(1);
    }
}

int main(void)
{
    const double packet_ns = 4160 * 8 / 10.0; /* 4160 B on the wire at 10 Gb/s */
    const double base_ns = 10000;             /* RTT of an empty path */
    apus_swift *swift;
    check(apus_swift_create("base_target=50us fs_range=0us", &swift));

    uint64_t now = 0;
    double rtt = base_ns;
    apus_allowance allowed;
    check(apus_swift_allowance(swift, &allowed));
    for (int round = 0; round < 2000; round++) {
        /* One acknowledgement per packet of the window, as an ACK clock has it. */
        for (uint32_t i = 0; i < allowed.packets; i++) {
            double capacity = base_ns / packet_ns;
            double waiting = allowed.cwnd > capacity ? allowed.cwnd - capacity : 0;
            rtt = base_ns + waiting * packet_ns;
            now += (uint64_t)(rtt / (double)allowed.packets);
            apus_ack ack = { .now_ns = now, .rtt_ns = (uint64_t)rtt, .acked_packets = 1, .hops = 1 };
            check(apus_swift_on_ack(swift, &ack));
            check(apus_swift_allowance(swift, &allowed));
        }
    }
    printf("window %.2f packets, RTT %.1f us, target %.1f us, RTO %.0f us\n", allowed.cwnd,
           rtt / 1e3, (double)allowed.target_ns / 1e3, (double)allowed.rto_ns / 1e3);
    double window = allowed.cwnd;

    check(apus_swift_on_loss(swift, now + 10 * (uint64_t)rtt));
    check(apus_swift_allowance(swift, &allowed));
    printf("after a loss: window %.2f packets\n", allowed.cwnd);
    if (allowed.cwnd >= window)
        return 1;

    /* Delays far above the target, for long: below one packet it is the pace that counts. */
    for (int i = 0; i < 100; i++) {
        now += 2000000;
        apus_ack ack = { .now_ns = now, .rtt_ns = 1000000, .acked_packets = 1, .hops = 1 };
        check(apus_swift_on_ack(swift, &ack));
    }
    check(apus_swift_allowance(swift, &allowed));
    printf("in a deep incast: window %.4f packets, one each %.1f ms\n", allowed.cwnd,
           (double)allowed.pacing_delay_ns / 1e6);
    apus_swift *wrong = NULL;
    int status = apus_swift_create("base_target=50", &wrong);
    printf("a setting without a unit: status %d: %s\n", status, apus_last_error());
    apus_swift_free(swift);
    return status == APUS_INVALID && allowed.packets == 1 && allowed.cwnd < 1 ? 0 : 1;
}
