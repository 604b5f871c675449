/* A ring all-reduce that a program runs over the simulated network: ring SCENARIO BYTES. Each rank sends a part to the
 * next one whenever a part has arrived, 2 (N - 1) times. */
#include "apus_sim.h"

#include <stdio.h>
#include <stdlib.h>

static apus_sim *sim;
static uint64_t part;
static uint32_t ranks;

struct rank {
    uint32_t number;
    uint32_t steps; /* left */
    uint64_t ended_at;
};

static void check(int status) {
    if (status >= APUS_SIM_INVALID) {
        fprintf(stderr, "status %d: %s\n", status, apus_sim_last_error(sim));
        exit(1);
    }
}

static void step(void *argument);

static void begin(struct rank *rank) {
    check(apus_sim_recv(sim, rank->number, (rank->number + ranks - 1) % ranks, 0, part, step, rank));
    check(apus_sim_send(sim, rank->number, (rank->number + 1) % ranks, 0, part, NULL, NULL));
}

static void step(void *argument) {
    struct rank *rank = argument;
    rank->ended_at = apus_sim_now(sim);
    if (--rank->steps > 0) {
        begin(rank);
    }
}

int main(int count, char **arguments) {
    char error[1000];
    uint64_t last = 0;
    struct rank *all;
    uint32_t i;
    if (count != 3) {
        fprintf(stderr, "ring SCENARIO BYTES\n");
        return 2;
    }
    sim = apus_sim_create_from_file(arguments[1], error, sizeof error);
    if (sim == NULL) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    ranks = apus_sim_ranks(sim);
    part = strtoull(arguments[2], NULL, 10) / ranks;
    all = calloc(ranks, sizeof *all);
    if (all == NULL) {
        return 1;
    }
    for (i = 0; i < ranks; ++i) {
        all[i].number = i;
        all[i].steps = 2 * (ranks - 1);
        begin(&all[i]);
    }
    check(apus_sim_run(sim, APUS_SIM_FOREVER));
    for (i = 0; i < ranks; ++i) {
        last = all[i].ended_at > last ? all[i].ended_at : last;
    }
    printf("%u ranks, %.6f us, %llu events\n", (unsigned)ranks, (double)last / 1e6,
           (unsigned long long)apus_sim_events(sim));
    apus_sim_destroy(sim);
    free(all);
    return 0;
}
