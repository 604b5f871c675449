/* Apus: ops between processes over UDP, with Swift or another congestion control algorithm.
 *
 * Link with libapus.so, or with libapus.a and -lpthread -ldl -lm.
 *
 * Calls
 *   A function that returns int returns APUS_OK or another apus_status; apus_last_error() then describes
 *   the error and its remedy. A call that fails has no effect, unless its description says otherwise.
 *   Times are nanoseconds. A timeout of 0 checks once, APUS_FOREVER waits without limit.
 *   A call that waits for a host fails with APUS_INVALID in a thread that has locked a region of this host
 *   (apus_region_lock), whatever its timeout: engines may wait for the region. This concerns apus_connect and its other
 *   forms, apus_accept, apus_host_drain, apus_connection_state, apus_connection_ports, apus_receive, apus_poll,
 *   apus_close and apus_close_within.
 *   While a thread has locked a region, calls of other threads with handles of its host may exceed their timeouts, and those
 *   without one may wait too: they may drive an engine that waits for the region. So a thread that has locked a region must not
 *   wait for a thread that may be within such a call.
 *   Strings are UTF-8 and end with a zero byte.
 * Threads
 *   All functions may be called from any thread, concurrently even on one handle, except the _free
 *   functions, apus_config_* and apus_swift_*, which need exclusive use of their handle.
 *   Calls that wait drive the engine. While none does, a thread of the host drives it, except in the mode
 *   "inline". In the mode "spinning" each engine has a thread that sleeps only while another thread wants its core.
 * Processes
 *   Handles belong to the process that created them. In a forked process, functions that return int fail with APUS_INVALID
 *   for handles of the parent's hosts, and the _free functions leave them alone. Such a process starts hosts of its own.
 * Callbacks
 *   No C++ exception and no longjmp may leave a callback: catch all exceptions within it.
 * Memory
 *   Memory given to an op or a region remains the caller's. Until the op's completion is polled, or the
 *   region is freed or locked (apus_region_lock), the caller must not change memory that may be sent or read, and must not
 *   access memory that may be written. Memory of regions and of ops must not overlap if some of it may be written: each region
 *   has a lock of its own. A handle keeps the handle that it was created from alive: the order of _free does
 *   not matter, and engines stop when the host and all handles created from it are freed. Freeing NULL has
 *   no effect.
 */
#ifndef APUS_H
#define APUS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Result of a call, or of an op. */
typedef enum apus_status {
    APUS_OK = 0,
    APUS_INVALID = 1,       /* an argument or a setting is wrong */
    APUS_SYSTEM = 2,        /* the operating system refused something */
    APUS_STOPPED = 3,       /* the engine has stopped */
    APUS_NO_ANSWER = 4,     /* connect: no answer; peer not running, or a different key */
    APUS_REFUSED = 5,       /* connect: the peer refuses (apus_last_error has its reason), or its backlog is full */
    APUS_PEER_FULL = 6,     /* connect: the peer has no room */
    APUS_TOO_MANY = 7,      /* connect, or register a region: this host's limit is reached */
    APUS_NO_KEY = 8,        /* connect: unknown key or name; or there is no key of a host */
    APUS_EXISTS = 9,        /* connect: a connection to this address is open */
    APUS_CROSSED = 10,      /* connect: the peer connected at the same time: accept its connection */
    APUS_INCOMPATIBLE = 11, /* connect: protocol mismatch */
    APUS_FULL = 12,         /* back-pressure: poll completions, then try again */
    APUS_TOO_LONG = 13,     /* longer than either side allows */
    APUS_ENDED = 14,        /* the connection has ended */
    APUS_TIMEOUT = 15,      /* the timeout expired */
    APUS_TOO_SMALL = 16,    /* the buffer is too small for the message, which is kept */
    APUS_NOT_SENT = 17,     /* completion: no part of the op was sent */
    APUS_OP_REFUSED = 18,   /* completion: the peer refused it and applied no part */
    APUS_UNKNOWN = 19,      /* completion: it may have been applied in part or in full */
    APUS_CIPHER_REFUSED = 20, /* connect: the peer does not accept this side's cipher */
    APUS_OTHER_MODE = 21,   /* connect: no answer; one side is insecure and the other has keys */
    APUS_PORT_CLOSED = 22,  /* connect: no answer; the peer's machine reports a closed port */
    APUS_NO_ROUTE = 23,     /* connect: no answer; the network cannot reach the address */
    APUS_PEER_DRAINING = 24, /* connect or op: the peer is shutting down and takes no more */
    APUS_DRAINING = 25,     /* connect or op: apus_host_drain was called for this host */
    APUS_UNLISTED = 26,     /* connect: the peer's key file does not list this host's key */
    APUS_QUOTA = 27         /* connect: this host's key has as many connections as the peer allows it */
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
    APUS_REASON_ENGINE_FAILED = 16  /* an engine of this host panicked; in a release build that ends the process instead */
} apus_reason;

#define APUS_FOREVER UINT64_MAX

typedef struct apus_config apus_config;
typedef struct apus_host apus_host;
typedef struct apus_connection apus_connection;
typedef struct apus_region apus_region;
typedef struct apus_queue apus_queue;
typedef struct apus_swift apus_swift;

/* Describes the last failed call of this thread; valid until the next failed call. */
const char *apus_last_error(void);
/* Describes an apus_reason; never freed. */
const char *apus_reason_text(int reason);

/* ---- Log ---- */

#define APUS_LOG_OFF 0
#define APUS_LOG_ERROR 1
#define APUS_LOG_WARN 2
#define APUS_LOG_INFO 3
#define APUS_LOG_DEBUG 4

/* Gets a line of the log: its level, its target ("apus_udp::connection") and its text; the pointers are valid during
 * the call. Any thread may call it, also several at once, and an engine waits for it: it must return soon, and must call
 * no function of this header. */
typedef void (*apus_log_callback)(void *context, int level, const char *target, const char *text);
/* Has the lines of this process up to `level` go to `callback`, or to standard error if it is NULL. Nothing is logged
 * before the first call. A later call replaces the former one, whose callback may still be running then.
 * docs/operations.md lists the events; their number per second is limited. APUS_SYSTEM if Rust code in this process
 * has a log already. `context` must live as long as lines may come: for the rest of the process, or until another call
 * has replaced the callback and all hosts that ran before it are freed. */
int apus_log(int level, apus_log_callback callback, void *context);

/* ---- Hosts ---- */

/* Writes a new shared key to a new file that only its owner may read: give it to every peer. A holder of a shared key can act as
 * any other holder. */
int apus_key_create(const char *path);
/* Writes a new key pair for the host `name`, and the shared keys of the file `group_file` (NULL for a new one), to a new file that
 * only its owner may read. Keep it on this host. Hosts with such files prove who they are to each other. APUS_SYSTEM if the file
 * exists or cannot be written, or the group file cannot be read; APUS_INVALID if the name is wrong, or the content or mode of
 * the group file. */
int apus_key_create_pair(const char *path, const char *name, const char *group_file);
/* Writes the line that peers need to their key files to know this host, "apus-peer-1 NAME KEY", with a zero byte, to `line`
 * (256 bytes suffice). APUS_NO_KEY if the file has no key pair. */
int apus_key_public(const char *path, char *line, size_t capacity);

/* Settings for a host at `bind`, with the keys of a file: an address such as "0.0.0.0:48700", or several, separated by
 * commas. Port 0 lets the system choose; "[::]:48700" serves IPv4 too. */
int apus_config_create(const char *bind, const char *key_file, apus_config **config);
/* Settings without keys: nothing is encrypted, and any peer may connect. For benchmarks. */
int apus_config_create_insecure(const char *bind, apus_config **config);
/* Changes a setting: mode (shared, spinning, inline), engines, max_mtu, max_flows, max_ops,
 * max_message, max_queued_bytes, max_queued_messages, max_unaccepted, submission_ring, socket_buffer,
 * max_sessions, max_pending, quota_sessions, quota_pending, quota_queued_bytes and quota_ops (of each key), handshake_rate (per second, of each address
 * and key), accept_unlisted (true, false: peers with keys that the file does not list), handshake_timeout ("5s"), keepalive, idle_timeout, nic_clock ("/dev/ptp0"),
 * cipher ("aes-256-gcm", "aegis-128x": for connections opened here), accept_ciphers (for connections that
 * peers open, "aes-256-gcm,aegis-128x"), departure_timestamps (true, false), dscp (0 to 63, of all traffic classes), dscp.CLASS ("dscp.3"),
 * qlog (a directory: every connection is recorded, as by apus_connection_record), line_rate ("10Gbps"), algorithm ("swift"), algorithm.PARAMETER ("algorithm.base_target", "500us").
 * balancer ("reps", "oblivious": packets of a flow are spread over source ports), ports (2 to 256, a power of two), source_port (the first
 * of them), accept_ports (of a peer), range (packet numbers), ack_path (symmetric, own), loss (ev-order, time, timeout), loss_delay ("5ms").
 * docs/udp.md describes them and their defaults. apus_host_start checks them together. */
int apus_config_set(apus_config *config, const char *name, const char *value);
/* A connection that a peer requests; the pointers are valid during the call. */
typedef struct apus_incoming {
    const char *address;
    const char *name;   /* of the peer in the key file; empty if it is not listed, or without keys of hosts */
    const uint8_t *key; /* 32 bytes: the public key that the peer proved; NULL without keys of hosts */
    uint32_t flows;
} apus_incoming;
/* Bytes of the reason of a refusal, with its zero byte. */
#define APUS_REASON_BYTES 201
/* Returns other than 0 to accept the connection. With 0 it is refused, and the peer is told the text in `reason`, which is empty
 * at first. Engines call it, from any thread and several at once, and serve nobody else meanwhile: it must return soon, and
 * must call no function of this header that takes a handle. */
typedef int (*apus_accept_callback)(void *context, const apus_incoming *incoming, char *reason, size_t capacity);
/* Asks `callback` about each connection that a peer requests; NULL accepts all peers that prove a key of the file. Every host
 * that is started with these settings calls it: `context` must live until each of these hosts, and all handles created from
 * them, are freed. */
int apus_config_set_accept(apus_config *config, apus_accept_callback callback, void *context);
void apus_config_free(apus_config *config);

/* Opens the sockets and starts the engines. The settings may be freed afterwards, or used again. */
int apus_host_start(const apus_config *config, apus_host **host);
/* Its address, "127.0.0.1:48700"; valid as long as the handle. */
const char *apus_host_address(const apus_host *host);
/* Replaces the host's keys by those of a file. Connections under keys that the file lacks end; those under keys that the file
 * has as "retired" continue. The host connects under the first shared key of the file, to the peer that the file lists. */
int apus_host_set_keys(const apus_host *host, const char *key_file);
/* In the mode "inline": runs one step of the engine. */
int apus_host_drive(const apus_host *host);
/* Ends every connection in order: from now on this host opens and takes no connections (APUS_DRAINING here,
 * APUS_PEER_DRAINING at peers), submits no reads, writes and atomic ops, and peers submit no ops to it. Messages may still
 * be sent, since they may answer. A connection closes when no op of either side is outstanding and its messages were
 * received. Waits for that; APUS_TIMEOUT if some connections have not ended by then. Then free all handles. */
int apus_host_drain(const apus_host *host, uint64_t timeout_ns);
void apus_host_free(apus_host *host);

/* Counters since the start. Delays are those of the busiest engine; 0 without samples. */
typedef struct apus_stats {
    uint64_t datagrams_sent;
    uint64_t datagrams_received;
    uint64_t payload_sent;     /* bytes, including retransmissions */
    uint64_t payload_received; /* bytes, without duplicates */
    uint64_t ops;              /* ended */
    uint64_t connections;      /* open */
    double fabric_rtt_p50_us;  /* NIC to NIC, Swift section 3.3 */
    double fabric_rtt_p99_us;
    double endpoint_delay_p50_us;
    double endpoint_delay_p99_us;
} apus_stats;
int apus_host_stats(const apus_host *host, apus_stats *stats);

/* ---- Connections ---- */

/* Connects to "10.0.0.1:48700" by this number of flows, 1 to the setting max_flows; APUS_INVALID with another one. The attempt ends
 * with APUS_TIMEOUT. */
int apus_connect(const apus_host *host, const char *peer, uint32_t flows, uint64_t timeout_ns,
                 apus_connection **connection);
/* Connects by one flow for each traffic class of `classes`, 0 to 7; APUS_INVALID with another one. */
int apus_connect_classes(const apus_host *host, const char *peer, const uint8_t *classes,
                         uint32_t flows, uint64_t timeout_ns, apus_connection **connection);
/* Connects to the peer of this name in the key file: no other host can answer. */
int apus_connect_to(const apus_host *host, const char *peer, const char *name, uint32_t flows,
                    uint64_t timeout_ns, apus_connection **connection);
/* Waits for a connection that a peer has opened. */
int apus_accept(const apus_host *host, uint64_t timeout_ns, apus_connection **connection);
/* The peer's address; valid as long as the handle. */
const char *apus_connection_peer(const apus_connection *connection);
/* The public key of its own that the peer has proved. APUS_NO_KEY under a shared key alone, whose holders cannot be told
 * apart, and without keys. */
int apus_connection_peer_key(const apus_connection *connection, uint8_t (*key)[32]);
/* The name of this key in the key file, or an empty text; valid as long as the handle. */
const char *apus_connection_peer_name(const apus_connection *connection);
/* Maximum length in bytes of a message that the peer accepts. */
uint64_t apus_connection_max_message(const apus_connection *connection);
/* Begins to record the connection's packets and windows in a new file of this directory, in the format qlog
 * (docs/operations.md), unless it is recorded already. If that fails later, the log has a warning. The engine writes the
 * file, which slows every packet: for diagnosis. */
int apus_connection_record(const apus_connection *connection, const char *directory);
/* Waits until its ops have ended, then closes it. Outstanding ops of the peer fail. APUS_TIMEOUT if the ops have not ended by
 * then: a peer that lives, but takes no messages, can hold them up without limit. The connection still closes after its last
 * op; the call may be repeated, and apus_connection_free may follow. */
int apus_close_within(const apus_connection *connection, uint64_t timeout_ns);
/* As apus_close_within without limit. */
int apus_close(const apus_connection *connection);
/* Closes it after its last op, without waiting. */
void apus_connection_free(apus_connection *connection);

/* State of a flow's algorithm; 0 where the algorithm lacks a value. Windows are in packets. */
typedef struct apus_flow_state {
    double cwnd;
    double fabric_cwnd;
    double endpoint_cwnd;
    uint64_t target_ns;
    uint64_t pacing_ns;
    uint64_t smoothed_rtt_ns;
    uint64_t packets_lost; /* sent by this side and declared lost, since the start */
} apus_flow_state;
/* Waits for the engine's next step. */
int apus_connection_state(const apus_connection *connection, uint32_t flow, apus_flow_state *state);
/* A source port of a connection (setting balancer), and its packets over all flows. */
typedef struct apus_port {
    uint16_t port;
    uint8_t usable; /* 1 if packets leave by it: the peer has confirmed it */
    uint64_t sent;
    uint64_t good;   /* reported as arrived without an ECN mark */
    uint64_t marked; /* and with one */
    uint64_t lost;
    uint64_t timeouts;
} apus_port;
/* Stores the first `capacity` source ports of the connection, their number, and why all packets leave by one port if they do: "off" (no
 * balancer), "peer_too_old", "peer_accepts_one" or "unconfirmed" (NAT or firewall); NULL if they do not. `ports` may be NULL with
 * capacity 0, and `one_port` may be NULL. Waits for the engine's next step, as apus_connection_state does. */
int apus_connection_ports(const apus_connection *connection, apus_port *ports, size_t capacity, size_t *count,
                          const char **one_port);

/* Copies the next message into `buffer`, and stores its length and the flow that carried it (`flow` may be
 * NULL). With APUS_TOO_SMALL, only the length is stored, and the next call returns that message. Calls of
 * several threads do not wait for each other; each message goes to one of them. */
int apus_receive(const apus_connection *connection, void *buffer, size_t capacity,
                 uint64_t timeout_ns, size_t *length, uint32_t *flow);

/* ---- Regions ---- */

#define APUS_READ 1
#define APUS_WRITE 2
#define APUS_ATOMIC 4 /* compare-and-swap and fetch-add */

/* Registers memory for peers: `access` is what they may do, such as APUS_READ | APUS_ATOMIC. Every connected peer that knows
 * the region's key may do it. APUS_TOO_MANY if the host has 65536 regions. */
int apus_region_register(const apus_host *host, void *memory, size_t length, int access,
                         apus_region **region);
/* The peers that may use a region: the peer of `connection`, which must be one of the region's host, until it ends, or the peers with these public keys, or nobody (NULL
 * and 0). */
typedef struct apus_grant {
    const apus_connection *connection;
    const uint8_t (*keys)[32];
    size_t count;
} apus_grant;
/* As apus_region_register, for the peers of `grant` only. To others the region's key is useless. */
int apus_region_register_for(const apus_host *host, void *memory, size_t length, int access,
                             const apus_grant *grant, apus_region **region);
/* Sets which peers may use a region of apus_region_register_for. When it returns, nothing of the region is read or changed for a
 * peer that has lost the right; its reads that are being answered end as APUS_UNKNOWN with APUS_REASON_WITHDRAWN. */
int apus_region_set_grant(const apus_region *region, const apus_grant *grant);
/* Its key, by which peers name it. */
uint64_t apus_region_key(const apus_region *region);
/* Locks the region for this thread, waiting at most for the timeout. Then the thread may read and change the memory: no op of a
 * peer sees or changes it meanwhile. Engines that receive packets for the region wait, and serve nobody else. So unlock it
 * soon, and call no function that waits or uses the region otherwise; those that wait for its host fail, and timeouts of other
 * threads are not kept meanwhile (see the top).
 * APUS_INVALID if this thread has locked it already.
 * The thread that has locked a region may free it, which unlocks it. Not allowed are: to free a region that another thread
 * has locked; to end a thread that has locked a region; and to free, with a region locked, another region of the same host,
 * which may wait for ever. */
int apus_region_lock(const apus_region *region, uint64_t timeout_ns);
/* Unlocks it, in the thread that has locked it. */
int apus_region_unlock(const apus_region *region);
/* Atomic access of the region's owner to a word: 8 bytes, little-endian, at a multiple of 8. `value`, `expected`
 * and so on are plain numbers. Each call is atomic, also towards the ops of peers. These calls may be used while
 * the memory must not be accessed otherwise. APUS_INVALID if `address` is not a multiple of 8, the word
 * reaches beyond the region, or this thread has locked the region. */
int apus_region_load(const apus_region *region, uint64_t address, uint64_t *value);
int apus_region_store(const apus_region *region, uint64_t address, uint64_t value);
/* Sets the word to `desired` if it is `expected`, and `old` to the word before the call. */
int apus_region_compare_and_swap(const apus_region *region, uint64_t address, uint64_t expected,
                                 uint64_t desired, uint64_t *old);
/* Adds to the word modulo 2^64, and sets `old` to the word before the call. */
int apus_region_fetch_add(const apus_region *region, uint64_t address, uint64_t delta, uint64_t *old);
/* Withdraws it and waits until no engine uses the memory any more. Outstanding answers to reads of peers
 * have one second to end. Then they are given up, and the reads end at the peers as APUS_UNKNOWN with
 * APUS_REASON_WITHDRAWN, so that a peer cannot hold the memory. In the mode "inline" the call drives the
 * engine meanwhile. */
void apus_region_free(apus_region *region);

/* ---- Ops ---- */

/* The end of an op. */
typedef struct apus_completion {
    uint64_t user;       /* from the op */
    int32_t status;      /* APUS_OK, APUS_NOT_SENT, APUS_OP_REFUSED or APUS_UNKNOWN */
    int32_t reason;      /* an apus_reason */
    uint64_t latency_ns; /* from the engine's acceptance to the end; 0 if it failed */
    uint64_t old;        /* the word before an atomic op; 0 for other ops and if it failed */
} apus_completion;

/* Creates a queue for the ends of at most `capacity` outstanding ops. */
int apus_queue_create(const apus_host *host, size_t capacity, apus_queue **queue);
/* Takes completions, at least one and at most `most`, as soon as there are any. */
int apus_poll(const apus_queue *queue, apus_completion *completions, size_t most,
              uint64_t timeout_ns, size_t *count);
/* Its pending ops continue and their completions are discarded, so their memory is free only when the
 * connection and all handles of the host are gone. Poll the completions first. */
void apus_queue_free(apus_queue *queue);

/* Destination of an op and of its completion. */
typedef struct apus_op {
    uint32_t flow;           /* of the connection, from 0 */
    uint64_t deadline_ns;    /* time after which the op is given up; 0: never */
    const apus_queue *queue; /* receives its completion; one of the connection's host, else APUS_INVALID */
    uint64_t user;           /* returned with the completion */
} apus_op;

/* These submit an op and return at once. `ticket` (may be NULL) gets a number for apus_cancel.
 * APUS_FULL if the limit of either side or of the queue on outstanding ops is reached; APUS_PEER_DRAINING if the peer is
 * shutting down: outstanding ops go on, and apus_connection_free may follow; APUS_INVALID if
 * address + length is 2^64 or more, or the address of an atomic op is not a multiple of 8. Reads and writes of at
 * most 1024 bytes are atomic; docs/udp.md describes longer ones and the order of ops. */

/* Stores bytes in the peer's region from `address`. */
int apus_write(const apus_connection *connection, const apus_op *op, uint64_t region,
               uint64_t address, const void *bytes, size_t length, uint64_t *ticket);
/* Fetches bytes of the peer's region from `address` into `buffer`. */
int apus_read(const apus_connection *connection, const apus_op *op, uint64_t region,
              uint64_t address, void *buffer, size_t length, uint64_t *ticket);
/* Delivers a message to the peer's application. */
int apus_send(const apus_connection *connection, const apus_op *op, const void *bytes,
              size_t length, uint64_t *ticket);
/* Sets the word at `address` of the peer's region to `desired` if it is `expected`: the `old` of the completion is
 * the word before. The peer executes an atomic op exactly once if it ends with APUS_OK; with APUS_UNKNOWN once or
 * not at all. */
int apus_compare_and_swap(const apus_connection *connection, const apus_op *op, uint64_t region,
                          uint64_t address, uint64_t expected, uint64_t desired, uint64_t *ticket);
/* Adds to the word at `address` of the peer's region, modulo 2^64. Otherwise as apus_compare_and_swap. */
int apus_fetch_add(const apus_connection *connection, const apus_op *op, uint64_t region,
                   uint64_t address, uint64_t delta, uint64_t *ticket);
/* Gives up an op, which then ends with APUS_REASON_CANCELLED, unless it has ended before. */
int apus_cancel(const apus_connection *connection, uint64_t ticket);

/* ---- Swift by itself, for another stack ----
 *
 * The sender half of one flow (Swift, Algorithm 1), without clocks, threads, and allocations after its
 * creation. The stack reports acknowledgements, losses and timeouts, then reads the allowance.
 * Delays are those of Swift section 3.1: rtt = t6 - t1, endpoint delay = remote_queuing + (t6 - t5). */

/* `settings` are parameters of the profile "paper", "base_target=25us fs_range=100us", or NULL;
 * `apus explain swift` lists them. */
int apus_swift_create(const char *settings, apus_swift **swift);

typedef struct apus_ack {
    uint64_t now_ns;            /* a monotonic clock, of any epoch */
    uint64_t rtt_ns;            /* end to end */
    uint64_t endpoint_delay_ns; /* part of the RTT spent in the hosts */
    uint32_t acked_packets;     /* acknowledged for the first time */
    uint8_t hops;               /* switches on the path, from the TTL */
} apus_ack;
int apus_swift_on_ack(apus_swift *swift, const apus_ack *ack);
/* A packet was declared lost by SACK. */
int apus_swift_on_loss(apus_swift *swift, uint64_t now_ns);
/* The retransmission timer expired. */
int apus_swift_on_timeout(apus_swift *swift, uint64_t now_ns);

/* Current limits of the flow. */
typedef struct apus_allowance {
    double cwnd;              /* window in packets, may be below 1 */
    uint32_t packets;         /* maximum in flight: at least 1 */
    uint64_t pacing_delay_ns; /* between packets; 0: ACK-clocked */
    uint64_t rto_ns;          /* retransmission timeout, from the last progress */
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
