/* Apus's simulator, driven by another program: it sends messages between ranks in simulated time, and is called
 * back when they end.
 *
 * Link with libapus_simulator.so, or with libapus_simulator.a and -lpthread -ldl -lm.
 *
 * Scenario
 *   The network, the algorithm, the hosts of ranks and other traffic come from a scenario with one workload of
 *   kind "external". The simulation ends at the scenario's `duration` at the latest.
 * Times
 *   Times are picoseconds of simulated time, exactly.
 * Callbacks
 *   Callbacks run within apus_sim_run only, one at a time and never within another function of the library. They
 *   may call every function except apus_sim_run. Callbacks of one time run in the order in which they were caused.
 *   No C++ exception and no longjmp may leave a callback: catch all exceptions within it.
 * Threads
 *   A simulation belongs to one thread at a time. There is no global state: several simulations may run in
 *   several threads.
 * Errors
 *   A function that returns int returns an apus_sim_status. From APUS_SIM_INVALID upwards, apus_sim_last_error
 *   describes the error and its remedy. A call that fails has no effect.
 */
#ifndef APUS_SIM_H
#define APUS_SIM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum apus_sim_status {
    APUS_SIM_OK = 0,
    APUS_SIM_IDLE = 1,       /* run: nothing is left that could happen */
    APUS_SIM_INVALID = 2,    /* an argument is wrong */
    APUS_SIM_UNFINISHED = 3, /* run: nothing is left that could happen, but messages or receives are unfinished */
    APUS_SIM_BUSY = 4,       /* run: called in a callback */
    APUS_SIM_FAILED = 5      /* a bug of the simulator, if it was built to unwind; a release build ends the process */
} apus_sim_status;

/* Time without limit, for apus_sim_run. */
#define APUS_SIM_FOREVER UINT64_MAX

typedef struct apus_sim apus_sim;
typedef void (*apus_sim_callback)(void *argument);

/* Creates a simulation from the text of a scenario, or from its file. Files that the scenario names are looked for
 * in its folder (of a text: in the current one). Returns NULL after an error, and writes its text into `error` if that is
 * not NULL, cut between two characters to at most `size` bytes with the final zero. */
apus_sim *apus_sim_create(const char *scenario, char *error, size_t size);
apus_sim *apus_sim_create_from_file(const char *path, char *error, size_t size);

/* Frees a simulation; callbacks that are due later are not called. In a callback: after the callback, and then
 * apus_sim_run returns. NULL has no effect. */
void apus_sim_destroy(apus_sim *sim);

/* Returns the number of ranks, which are numbered from 0. */
uint32_t apus_sim_ranks(const apus_sim *sim);

/* Sends a message of 1 to 2^48 bytes to another rank, now. `done` is called when the send is done: by the key `done`
 * of the workload, when the last byte has left, when the message has arrived, or when the sender has the
 * acknowledgement. `done` may be NULL. */
int apus_sim_send(apus_sim *sim, uint32_t from, uint32_t to, uint64_t tag, uint64_t bytes, apus_sim_callback done,
                  void *argument);

/* Receives a message, now. `done` is called when the message has arrived; it may be NULL. Of the messages with the
 * same sender, receiver and tag, the n-th receive takes the n-th that is sent, before the receive or after it. Both
 * must have the same size. */
int apus_sim_recv(apus_sim *sim, uint32_t rank, uint32_t from, uint64_t tag, uint64_t bytes, apus_sim_callback done,
                  void *argument);

/* Calls `function` after `delay_ps`, which may be 0. */
int apus_sim_schedule(apus_sim *sim, uint64_t delay_ps, apus_sim_callback function, void *argument);

/* Returns the simulated time. */
uint64_t apus_sim_now(const apus_sim *sim);

/* Returns the number of events of the simulated network so far: a measure of the work. */
uint64_t apus_sim_events(const apus_sim *sim);

/* Runs the simulation and its callbacks, those at `until_ps` included, until this time or the scenario's end is
 * reached (APUS_SIM_OK), a callback has called apus_sim_stop or apus_sim_destroy (APUS_SIM_OK), or nothing is left that
 * could happen (APUS_SIM_IDLE, APUS_SIM_UNFINISHED). */
int apus_sim_run(apus_sim *sim, uint64_t until_ps);

/* In a callback: lets apus_sim_run return after it. The simulation can go on. */
void apus_sim_stop(apus_sim *sim);

/* Describes the last call of this simulation that failed. Valid until the next call that fails. */
const char *apus_sim_last_error(const apus_sim *sim);

#ifdef __cplusplus
}
#endif

#endif
