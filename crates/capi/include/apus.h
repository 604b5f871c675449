/* Apus: ops between processes over UDP, with Swift or another algorithm in control of congestion.
 *
 * Link with libapus.so, or with libapus.a and -lpthread -ldl -lm.
 *
 * Calls
 *   A function that returns int returns APUS_OK or another apus_status; apus_last_error() then says
 *   what was wrong and what would be right. Nothing has happened if a call fails, unless it says so.
 *   Times are nanoseconds. A timeout of 0 looks once, APUS_FOREVER waits.
 *   Texts end with a zero byte and are UTF-8.
 * Threads
 *   All functions may be called from any thread, also at once on the same handle, but for the _free
 *   functions, apus_config_* and apus_swift_*, which want their handle for themselves.
 *   Engines have threads of their own, but in the mode "inline": there whoever waits drives the engine.
 * Memory
 *   What an op or a region is given stays the caller's, and is left alone by the caller until the op's
 *   completion was polled or the region is freed: not changed while it may be sent or read, not touched
 *   while it may be written. A handle keeps what it was made from: the order of _free does not matter,
 *   and engines stop when the host and all that was made from it are freed. Freeing NULL does nothing.
 */
#ifndef APUS_H
#define APUS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a call went, and how an op ended. */
typedef enum apus_status {
    APUS_OK = 0,
    APUS_INVALID = 1,       /* an argument or a setting is wrong */
    APUS_SYSTEM = 2,        /* the operating system refused something */
    APUS_STOPPED = 3,       /* the engine has stopped */
    APUS_NO_ANSWER = 4,     /* connect: no answer; peer not running, or a different key */
    APUS_REFUSED = 5,       /* connect: the peer does not want it, or has too many to accept */
    APUS_PEER_FULL = 6,     /* connect: the peer has no room */
    APUS_TOO_MANY = 7,      /* connect: there is no room here */
    APUS_NO_KEY = 8,        /* connect: there is no such key here */
    APUS_EXISTS = 9,        /* connect: there is a connection to this address */
    APUS_CROSSED = 10,      /* connect: the peer connects to this side: accept that */
    APUS_INCOMPATIBLE = 11, /* connect: the peer speaks something else */
    APUS_FULL = 12,         /* back-pressure: poll completions, then try again */
    APUS_TOO_LONG = 13,     /* longer than either side allows */
    APUS_ENDED = 14,        /* the connection has ended */
    APUS_TIMEOUT = 15,      /* nothing within the time given */
    APUS_TOO_SMALL = 16,    /* the buffer is too small for the message, which is kept */
    APUS_NOT_SENT = 17,     /* completion: the peer has seen nothing of the op */
    APUS_OP_REFUSED = 18,   /* completion: the peer refused it and applied nothing */
    APUS_UNKNOWN = 19,      /* completion: it may have been applied in part or whole */
    APUS_CIPHER_REFUSED = 20, /* connect: the peer does not take the cipher of this side */
    APUS_OTHER_MODE = 21,   /* connect: no answer; one side is insecure and the other has keys */
    APUS_PORT_CLOSED = 22,  /* connect: no answer; the peer's machine says that the port is closed */
    APUS_NO_ROUTE = 23      /* connect: no answer; the network cannot reach the address */
} apus_status;

/* Why an op did not end with APUS_OK. */
typedef enum apus_reason {
    APUS_REASON_NONE = 0,
    APUS_REASON_CANCELLED = 1,
    APUS_REASON_DEADLINE = 2,
    APUS_REASON_WITHDRAWN = 3,      /* the peer freed the region meanwhile */
    APUS_REASON_CLOSED_HERE = 4,
    APUS_REASON_CLOSED_BY_PEER = 5,
    APUS_REASON_SILENT = 6,         /* the peer was silent for too long */
    APUS_REASON_PEER_RESTARTED = 7,
    APUS_REASON_REPLACED = 8,       /* by another connection of the peer */
    APUS_REASON_STOPPED = 9,
    APUS_REASON_NO_REGION = 10,
    APUS_REASON_NOT_ALLOWED = 11,
    APUS_REASON_OUT_OF_BOUNDS = 12,
    APUS_REASON_TOO_LONG = 13,
    APUS_REASON_KEY_WITHDRAWN = 14, /* by apus_host_set_keys */
    APUS_REASON_UNSENDABLE = 15,    /* a packet of the op could not be built */
    APUS_REASON_ENGINE_FAILED = 16  /* an engine of this host panicked */
} apus_reason;

#define APUS_FOREVER UINT64_MAX

typedef struct apus_config apus_config;
typedef struct apus_host apus_host;
typedef struct apus_connection apus_connection;
typedef struct apus_region apus_region;
typedef struct apus_queue apus_queue;
typedef struct apus_swift apus_swift;

/* What was wrong with the last call of this thread that failed; valid until the next one that does. */
const char *apus_last_error(void);
/* An apus_reason in words; never freed. */
const char *apus_reason_text(int reason);

/* ---- Hosts ---- */

/* Writes a new key to a new file that only its owner may read: give it to every peer. */
int apus_key_create(const char *path);

/* Settings for a host at `bind` ("0.0.0.0:48700"; port 0 lets the system choose), with the keys of a
 * file. */
int apus_config_create(const char *bind, const char *key_file, apus_config **config);
/* The same without keys: nothing is encrypted and anyone may connect. For benchmarks. */
int apus_config_create_insecure(const char *bind, apus_config **config);
/* Changes a setting: mode (spinning, hybrid, blocking, inline), engines, max_mtu, max_flows, max_ops,
 * max_message, max_queued_bytes, max_queued_messages, max_unaccepted, submission_ring, socket_buffer,
 * max_sessions, handshake_timeout ("5s"), keepalive, idle_timeout, nic_clock ("/dev/ptp0"),
 * cipher ("aes-256-gcm", "aegis-128x": of connections made here), accept_ciphers (what peers may seal
 * theirs with, "aes-256-gcm,aegis-128x"), departure_timestamps (true, false), dscp (0 to 63, of all traffic classes), dscp.CLASS ("dscp.3"),
 * line_rate ("10Gbps"), algorithm ("swift"), algorithm.PARAMETER ("algorithm.base_target", "500us").
 * What they mean and their defaults: docs/udp.md. Checked together by apus_host_start. */
int apus_config_set(apus_config *config, const char *name, const char *value);
void apus_config_free(apus_config *config);

/* Opens the sockets and starts the engines. The settings may be freed afterwards, or used again. */
int apus_host_start(const apus_config *config, apus_host **host);
/* Where it listens, "127.0.0.1:48700"; valid as long as the handle. */
const char *apus_host_address(const apus_host *host);
/* Takes the keys of a file in place of those that the host has: connections under keys of both go on, those
 * under keys that are gone end. The first key of the file is the one under which the host connects. */
int apus_host_set_keys(const apus_host *host, const char *key_file);
/* In the mode "inline": does what there is to do now. */
int apus_host_drive(const apus_host *host);
void apus_host_free(apus_host *host);

/* Counts since the start. Delays are 0 as long as there are none, and those of the busiest engine. */
typedef struct apus_stats {
    uint64_t datagrams_sent;
    uint64_t datagrams_received;
    uint64_t payload_sent;     /* bytes, those sent again included */
    uint64_t payload_received; /* bytes, for the first time */
    uint64_t ops;              /* ended */
    uint64_t connections;      /* open */
    double fabric_rtt_p50_us;  /* NIC to NIC, Swift section 3.3 */
    double fabric_rtt_p99_us;
    double endpoint_delay_p50_us;
    double endpoint_delay_p99_us;
} apus_stats;
int apus_host_stats(const apus_host *host, apus_stats *stats);

/* ---- Connections ---- */

/* Connects to "10.0.0.1:48700" by so many flows. After APUS_TIMEOUT it is given up. */
int apus_connect(const apus_host *host, const char *peer, uint32_t flows, uint64_t timeout_ns,
                 apus_connection **connection);
/* The same by one flow for each of `classes`, which belongs to that traffic class, 0 to 7. */
int apus_connect_classes(const apus_host *host, const char *peer, const uint8_t *classes,
                         uint32_t flows, uint64_t timeout_ns, apus_connection **connection);
/* Waits for a connection that a peer has opened. */
int apus_accept(const apus_host *host, uint64_t timeout_ns, apus_connection **connection);
/* The peer's address; valid as long as the handle. */
const char *apus_connection_peer(const apus_connection *connection);
/* Bytes of the longest message that the peer takes. */
uint64_t apus_connection_max_message(const apus_connection *connection);
/* Waits until its ops have ended, then closes it; the peer's ops on it end where they are. */
int apus_close(const apus_connection *connection);
/* Closes it as soon as its ops have ended, without waiting. */
void apus_connection_free(apus_connection *connection);

/* What the algorithm of a flow allows now; 0 where it has no such thing. Windows are in packets. */
typedef struct apus_flow_state {
    double cwnd;
    double fabric_cwnd;
    double endpoint_cwnd;
    uint64_t target_ns;
    uint64_t pacing_ns;
    uint64_t smoothed_rtt_ns;
    uint64_t packets_lost; /* that this side sent and took for lost, from the start */
} apus_flow_state;
int apus_connection_state(const apus_connection *connection, uint32_t flow, apus_flow_state *state);

/* Copies the next message into `buffer` and says how long it is and by which flow it came (`flow` may
 * be NULL). With APUS_TOO_SMALL only the length is said, and the next call has the same message. Calls of
 * several threads do not wait for each other; each message goes to one of them. */
int apus_receive(const apus_connection *connection, void *buffer, size_t capacity,
                 uint64_t timeout_ns, size_t *length, uint32_t *flow);

/* ---- Regions ---- */

#define APUS_READ 1
#define APUS_WRITE 2

/* Lets peers that have its key read or write (or both: APUS_READ | APUS_WRITE) this memory. */
int apus_region_register(const apus_host *host, void *memory, size_t length, int access,
                         apus_region **region);
/* The key by which peers name it: whoever has it and a connection has the access. */
uint64_t apus_region_key(const apus_region *region);
/* Withdraws it and waits until no engine uses the memory any more. Answers to reads of peers that are under
 * way have one second to end. Then they are given up, and the reads end at the peers as APUS_UNKNOWN with
 * APUS_REASON_WITHDRAWN, so a peer cannot hold the memory. In the mode "inline" it drives the engine
 * meanwhile. */
void apus_region_free(apus_region *region);

/* ---- Ops ---- */

/* How an op ended. */
typedef struct apus_completion {
    uint64_t user;       /* from the op */
    int32_t status;      /* APUS_OK, APUS_NOT_SENT, APUS_OP_REFUSED or APUS_UNKNOWN */
    int32_t reason;      /* an apus_reason */
    uint64_t latency_ns; /* from the engine's taking it to its end; 0 if it failed */
} apus_completion;

/* A queue for the ends of at most `capacity` ops at a time. */
int apus_queue_create(const apus_host *host, size_t capacity, apus_queue **queue);
/* Takes completions, at least one and at most `most`, as soon as there are any. */
int apus_poll(const apus_queue *queue, apus_completion *completions, size_t most,
              uint64_t timeout_ns, size_t *count);
/* Its ops go on; nobody hears of their ends, so their memory is free only when the connection's peer
 * and all handles of the host are gone. Poll them first. */
void apus_queue_free(apus_queue *queue);

/* Where an op goes, and where its end. */
typedef struct apus_op {
    uint32_t flow;           /* of the connection, from 0 */
    uint64_t deadline_ns;    /* given up if it has not ended after this long; 0: never */
    const apus_queue *queue; /* hears of its end, once */
    uint64_t user;           /* comes back with the completion */
} apus_op;

/* These submit an op and return at once. `ticket` (may be NULL) gets a number for apus_cancel.
 * APUS_FULL if as much is under way as either side or the queue allows; APUS_INVALID if address + length is
 * 2^64 or more. Reads and writes are not atomic: docs/udp.md says what of them can be seen. */

/* Stores bytes in the peer's region from `address` on. */
int apus_write(const apus_connection *connection, const apus_op *op, uint64_t region,
               uint64_t address, const void *bytes, size_t length, uint64_t *ticket);
/* Fetches bytes of the peer's region from `address` on into `buffer`. */
int apus_read(const apus_connection *connection, const apus_op *op, uint64_t region,
              uint64_t address, void *buffer, size_t length, uint64_t *ticket);
/* Delivers a message to the peer's application. */
int apus_send(const apus_connection *connection, const apus_op *op, const void *bytes,
              size_t length, uint64_t *ticket);
/* Asks for an op to be given up; it then ends with APUS_REASON_CANCELLED, unless it has ended. */
int apus_cancel(const apus_connection *connection, uint64_t ticket);

/* ---- Swift by itself, for another stack ----
 *
 * The sender half of one flow (Swift, Algorithm 1), without clocks, threads and allocation after its
 * making. The stack tells it of acknowledgements, losses and timeouts, then asks what it allows.
 * Delays are those of Swift section 3.1: rtt = t6 - t1, endpoint delay = remote_queuing + (t6 - t5). */

/* `settings` are parameters of the profile "paper", "base_target=25us fs_range=100us", or NULL;
 * `apus explain swift` lists them. */
int apus_swift_create(const char *settings, apus_swift **swift);

typedef struct apus_ack {
    uint64_t now_ns;            /* a clock that does not go back */
    uint64_t rtt_ns;            /* end to end */
    uint64_t endpoint_delay_ns; /* of that, in the hosts */
    uint32_t acked_packets;     /* acknowledged for the first time */
    uint8_t hops;               /* switches on the path, from the TTL */
} apus_ack;
int apus_swift_on_ack(apus_swift *swift, const apus_ack *ack);
/* A packet was found lost by SACK. */
int apus_swift_on_loss(apus_swift *swift, uint64_t now_ns);
/* The retransmission timer expired. */
int apus_swift_on_timeout(apus_swift *swift, uint64_t now_ns);

/* What the flow may send now. */
typedef struct apus_allowance {
    double cwnd;              /* window in packets, below 1 too */
    uint32_t packets;         /* of them in flight: at least 1 */
    uint64_t pacing_delay_ns; /* from one packet to the next; 0: as acknowledgements come */
    uint64_t rto_ns;          /* of the timer to set, from the last progress */
    double fabric_cwnd;
    double endpoint_cwnd;
    uint64_t target_ns;       /* of the fabric delay, at the last acknowledgement; 0 before */
} apus_allowance;
int apus_swift_allowance(const apus_swift *swift, apus_allowance *allowance);
void apus_swift_free(apus_swift *swift);

#ifdef __cplusplus
}
#endif

#endif
