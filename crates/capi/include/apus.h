/* Apus: ops between processes over UDP, with Swift or another congestion control algorithm.
 *
 * Link with libapus.so, or with libapus.a and -lpthread -ldl -lm.
 *
 * Calls
 *   A function that returns int returns APUS_OK or another apus_status. After an error, apus_last_error() describes the error
 *   and its remedy. A call that fails has no effect, unless its description says otherwise.
 *   Times are in nanoseconds. With a timeout of 0 a call checks once; with APUS_FOREVER it waits without limit.
 *   Strings are UTF-8 and end with a zero byte.
 * Pointers
 *   A pointer must be valid for its type and size, and a handle must not be used after its _free function. NULL is allowed for
 *   memory of 0 bytes, and where a description says so. Elsewhere, functions that return int fail with APUS_INVALID for NULL.
 * Locked regions
 *   If a thread has locked a region (apus_region_lock), its calls that wait for the region's host fail with APUS_INVALID,
 *   whatever their timeout, because an engine may wait for the region. This concerns apus_connect and its other forms,
 *   apus_accept, apus_host_drain, apus_connection_state, apus_connection_ports, apus_receive, apus_poll and apus_close.
 *   During that time, calls of other threads with handles of this host may exceed their timeouts, and calls without a timeout
 *   may wait too: they may drive an engine that waits for the region. A thread that has locked a region must therefore not wait
 *   for a thread that may be within such a call.
 * Threads
 *   All functions may be called from any thread, concurrently even on one handle, except the _free functions, apus_config_* and
 *   apus_swift_*, which need exclusive use of their handle.
 *   Calls that wait drive the engine. While no call waits, a thread of the host drives it, except in the mode "inline". In the
 *   mode "spinning", each engine has a thread that sleeps only while another thread wants its core.
 * Processes
 *   Handles belong to the process that created them. In a forked process, functions that return int fail with APUS_INVALID for
 *   handles of the parent's hosts, and the _free functions have no effect on these handles. A forked process must start hosts of
 *   its own.
 * Callbacks
 *   No C++ exception and no longjmp may leave a callback: catch all exceptions within it.
 * Memory
 *   Memory that is passed to an op or a region remains the caller's. Until the op's completion is polled, or the region is freed
 *   or locked (apus_region_lock), the caller must not change memory that may be sent or read, and must not access memory that
 *   may be written.
 *   Memory of regions and of ops must not overlap if some of it may be written: each region has a lock of its own.
 *   A handle keeps the handle from which it was created alive, so the order of the _free calls does not matter. Engines stop
 *   when the host and all handles created from it have been freed. Freeing NULL has no effect.
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
    APUS_NO_ANSWER = 4,     /* connect: no answer; the peer is not running, or it has a different key */
    APUS_REFUSED = 5,       /* connect: the peer refused (apus_last_error has its reason), or its backlog is full */
    APUS_PEER_FULL = 6,     /* connect: the peer has no room for another connection */
    APUS_TOO_MANY = 7,      /* connect, or register a region: this host's limit is reached */
    APUS_NO_KEY = 8,        /* connect: unknown key or name; other calls: there is no key of a host */
    APUS_EXISTS = 9,        /* connect: a connection to this address is open */
    APUS_CROSSED = 10,      /* connect: the peer connected at the same time; accept its connection */
    APUS_INCOMPATIBLE = 11, /* connect: protocol mismatch */
    APUS_FULL = 12,         /* back-pressure: poll completions, then try again */
    APUS_TOO_LONG = 13,     /* the op is longer than either side allows */
    APUS_ENDED = 14,        /* the connection has ended */
    APUS_TIMEOUT = 15,      /* the timeout expired */
    APUS_TOO_SMALL = 16,    /* the buffer is too small; a message is kept for the next call */
    APUS_NOT_SENT = 17,     /* completion: no part of the op was sent */
    APUS_OP_REFUSED = 18,   /* completion: the peer refused the op and applied no part of it */
    APUS_UNKNOWN = 19,      /* completion: the peer may have applied the op in part or in full */
    APUS_CIPHER_REFUSED = 20, /* connect: the peer does not accept this side's cipher */
    APUS_OTHER_MODE = 21,   /* connect: no answer; one side is insecure and the other has keys */
    APUS_PORT_CLOSED = 22,  /* connect: no answer; the peer's machine reports a closed port */
    APUS_NO_ROUTE = 23,     /* connect: no answer; the network cannot reach the address */
    APUS_PEER_DRAINING = 24, /* connect or op: the peer is shutting down and accepts no more */
    APUS_DRAINING = 25,     /* connect or op: apus_host_drain was called for this host */
    APUS_UNLISTED = 26,     /* connect: the peer's key file does not list this host's key */
    APUS_QUOTA = 27         /* connect: this host's key has as many connections as the peer allows it */
} apus_status;

/* Reason why an op did not end with APUS_OK. */
typedef enum apus_reason {
    APUS_REASON_NONE = 0,
    APUS_REASON_CANCELLED = 1,
    APUS_REASON_DEADLINE = 2,
    APUS_REASON_WITHDRAWN = 3,      /* the peer freed the region while the op was outstanding */
    APUS_REASON_CLOSED_HERE = 4,
    APUS_REASON_CLOSED_BY_PEER = 5,
    APUS_REASON_SILENT = 6,         /* the peer was silent for too long */
    APUS_REASON_PEER_RESTARTED = 7,
    APUS_REASON_REPLACED = 8,       /* another connection of the peer replaced this one */
    APUS_REASON_STOPPED = 9,
    APUS_REASON_NO_REGION = 10,
    APUS_REASON_NOT_ALLOWED = 11,
    APUS_REASON_OUT_OF_BOUNDS = 12,
    APUS_REASON_TOO_LONG = 13,
    APUS_REASON_KEY_WITHDRAWN = 14, /* apus_host_set_keys removed the connection's key */
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

/* Returns the description of the last failed call of this thread. The text is valid until the next failed call of this thread. */
const char *apus_last_error(void);
/* Returns the description of an apus_reason, a static text. */
const char *apus_reason_text(int reason);

/* ---- Log ---- */

#define APUS_LOG_OFF 0
#define APUS_LOG_ERROR 1
#define APUS_LOG_WARN 2
#define APUS_LOG_INFO 3
#define APUS_LOG_DEBUG 4

/* Receives a line of the log: its level, its target ("apus_udp::connection") and its text. The pointers are valid during the
 * call. Any thread may call this function, and several threads may call it at the same time. An engine waits for the call, so the
 * function must return soon. It must call no function of this header. */
typedef void (*apus_log_callback)(void *context, int level, const char *target, const char *text);
/* Sends the log lines of this process up to `level` to `callback` or, if that is NULL, to standard error. Nothing is logged
 * before the first call. A later call replaces the previous callback, which may still be running then. docs/operations.md lists
 * the events; their number per second is limited.
 * APUS_SYSTEM if Rust code in this process has a log already. `context` must live as long as lines may arrive: for the rest of
 * the process, or until another call has replaced the callback and all hosts that ran before that call are freed. */
int apus_log(int level, apus_log_callback callback, void *context);

/* ---- Hosts ---- */

/* Writes a new shared key to a new file that only its owner may read. Give the file to every peer. A holder of a shared key can
 * act as any other holder. */
int apus_key_create(const char *path);
/* Writes a new key pair for the host `name`, and the shared keys of the file `group_file` (NULL: a new shared key), to a new file
 * that only its owner may read. Keep the file on this host. Hosts with such files prove their identity to each other. APUS_SYSTEM
 * if the file exists or cannot be written, or the group file cannot be read; APUS_INVALID if the name, or the content or mode of
 * the group file, is wrong. */
int apus_key_create_pair(const char *path, const char *name, const char *group_file);
/* Writes the line that peers need in their key files to identify this host, "apus-peer-1 NAME KEY", with a zero byte, to `line`
 * (256 bytes suffice). APUS_NO_KEY if the file has no key pair. */
int apus_key_public(const char *path, char *line, size_t capacity);

/* Creates settings for a host at `bind` with the keys of a file. `bind` is an address such as "0.0.0.0:48700", or several
 * addresses separated by commas. Port 0 lets the system choose; "[::]:48700" serves IPv4 too. */
int apus_config_create(const char *bind, const char *key_file, apus_config **config);
/* Creates settings without keys, for benchmarks: nothing is encrypted, and any peer may connect. */
int apus_config_create_insecure(const char *bind, apus_config **config);
/* Changes a setting. docs/udp.md describes the settings and their defaults; apus_host_start checks them together:
 *   engines: mode (shared, spinning, inline), engines, submission_ring, socket_buffer, nic_clock ("/dev/ptp0"),
 *     departure_timestamps (true, false)
 *   limits: max_mtu, max_flows, max_ops, max_message, max_queued_bytes, max_queued_messages, max_unaccepted, max_sessions,
 *     max_pending (setting max_sessions also lowers a larger max_pending to its value)
 *   quotas of each key: quota_sessions, quota_pending, quota_queued_bytes, quota_ops
 *   handshakes: handshake_rate (per second, of each address and key), handshake_timeout ("5s"), accept_unlisted (true, false:
 *     accept peers with keys that the file does not list)
 *   sessions: keepalive, idle_timeout, cipher ("aes-256-gcm", "aegis-128x": for connections opened here), accept_ciphers (for
 *     connections that peers open, "aes-256-gcm,aegis-128x")
 *   traffic classes: dscp (0 to 63, of all traffic classes), dscp.CLASS ("dscp.3")
 *   records: qlog (a directory: every connection is recorded, as by apus_connection_record)
 *   algorithm: algorithm ("swift"), algorithm.PARAMETER ("algorithm.base_target", "500us"), line_rate ("10Gbps")
 *   source ports: balancer ("reps", "oblivious": packets of a flow are spread over source ports), ports (2 to 256, a power of
 *     two), source_port (the first port after the listening port), accept_ports (of a peer), range (packet numbers), ack_path
 *     (symmetric, own), loss (ev-order, time, timeout), loss_delay ("5ms") */
int apus_config_set(apus_config *config, const char *name, const char *value);
/* A connection that a peer requests. The pointers are valid during the call. */
typedef struct apus_incoming {
    const char *address;
    const char *name;   /* of the peer in the key file; empty if it is not listed, or without keys of hosts */
    const uint8_t *key; /* 32 bytes: the public key that the peer proved; NULL without keys of hosts */
    uint32_t flows;
} apus_incoming;
/* Maximum number of bytes of a reason of a refusal, including its zero byte. */
#define APUS_REASON_BYTES 201
/* Returns a value other than 0 to accept the connection, and 0 to refuse it. In the latter case the peer gets the text in
 * `reason`, which is empty at first.
 * Engines call this function, from any thread, and several engines may call it at the same time. An engine serves no other peer
 * during the call, so the function must return soon. It must call no function of this header that takes a handle. */
typedef int (*apus_accept_callback)(void *context, const apus_incoming *incoming, char *reason, size_t capacity);
/* Sets the callback that decides on each connection that a peer requests; NULL accepts all peers that prove a key of the file.
 * Every host that is started with these settings calls it. `context` must live until each of these hosts, and all handles created
 * from them, are freed. */
int apus_config_set_accept(apus_config *config, apus_accept_callback callback, void *context);
void apus_config_free(apus_config *config);

/* Opens the sockets and starts the engines. The settings may be freed afterwards, or used again. */
int apus_host_start(const apus_config *config, apus_host **host);
/* Returns the first address of the host, such as "127.0.0.1:48700". The text is valid as long as the handle. */
const char *apus_host_address(const apus_host *host);
/* Replaces the host's keys by those of a file. Connections under keys that the file lacks end; connections under keys that the
 * file has as "retired" continue. For new connections, the host proves the first shared key of the file or, with keys of hosts,
 * connects to the peer that the file lists. */
int apus_host_set_keys(const apus_host *host, const char *key_file);
/* Runs one step of the engine, in the mode "inline". */
int apus_host_drive(const apus_host *host);
/* Ends every connection in order, without cutting off ops. From now on this host opens and accepts no connections (APUS_DRAINING
 * here, APUS_PEER_DRAINING at peers) and submits no reads, writes or atomic ops, and peers submit no ops to it. This host may
 * still send messages, since they may answer requests.
 * A connection closes when no op of either side is outstanding and its messages were received. The call waits for that, and fails
 * with APUS_TIMEOUT if some connections have not ended in time. Afterwards free all handles. */
int apus_host_drain(const apus_host *host, uint64_t timeout_ns);
void apus_host_free(apus_host *host);

/* Counters since the start of the host, summed over its engines. Delays are those of the engine with the most RTT samples; 0
 * without samples. */
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
/* Stores the counters of the host. */
int apus_host_stats(const apus_host *host, apus_stats *stats);

/* ---- Connections ---- */

/* Connects to a peer at an address such as "10.0.0.1:48700" by `flows` flows, 1 to the setting max_flows; APUS_INVALID for
 * another number. If the call fails with APUS_TIMEOUT, the attempt is abandoned. */
int apus_connect(const apus_host *host, const char *peer, uint32_t flows, uint64_t timeout_ns,
                 apus_connection **connection);
/* Connects by one flow for each of the `flows` traffic classes in `classes`, 0 to 7; APUS_INVALID for another class. Otherwise as
 * apus_connect. */
int apus_connect_classes(const apus_host *host, const char *peer, const uint8_t *classes,
                         uint32_t flows, uint64_t timeout_ns, apus_connection **connection);
/* Connects to the peer of this name in the key file; no other host can answer. Otherwise as apus_connect. */
int apus_connect_to(const apus_host *host, const char *peer, const char *name, uint32_t flows,
                    uint64_t timeout_ns, apus_connection **connection);
/* Waits for a connection that a peer has opened, and accepts it. */
int apus_accept(const apus_host *host, uint64_t timeout_ns, apus_connection **connection);
/* Returns the peer's address. The text is valid as long as the handle. */
const char *apus_connection_peer(const apus_connection *connection);
/* Stores the public key of its own that the peer has proved. APUS_NO_KEY without keys, and under a shared key alone, whose
 * holders cannot be distinguished. */
int apus_connection_peer_key(const apus_connection *connection, uint8_t (*key)[32]);
/* Returns the name of the peer's public key in the key file, or an empty text. The text is valid as long as the handle. */
const char *apus_connection_peer_name(const apus_connection *connection);
/* Returns the maximum length in bytes of a message that the peer accepts. */
uint64_t apus_connection_max_message(const apus_connection *connection);
/* Begins to record the connection's packets and windows in a new file of this directory, in the qlog format (docs/operations.md),
 * unless the connection is recorded already. If recording fails later, the log has a warning. The engine writes the file, which
 * slows every packet: use records for diagnosis only. */
int apus_connection_record(const apus_connection *connection, const char *directory);
/* Closes the connection after its ops have ended, and waits for that. Outstanding ops of the peer fail. APUS_TIMEOUT if the ops
 * have not ended in time: a peer that lives but takes no messages can delay them without limit. The connection then still closes
 * after its last op. The call may be repeated, and apus_connection_free may follow. */
int apus_close(const apus_connection *connection, uint64_t timeout_ns);
/* Frees the handle. The connection closes after its last op, without a wait. */
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
/* Stores the state of a flow. Waits for the engine's next step. */
int apus_connection_state(const apus_connection *connection, uint32_t flow, apus_flow_state *state);
/* A source port of a connection (setting balancer), and counters of its packets over all flows. */
typedef struct apus_port {
    uint16_t port;
    uint8_t usable; /* 1 if packets leave by this port: the peer has confirmed it */
    uint64_t sent;
    uint64_t good;   /* reported as arrived without an ECN mark */
    uint64_t marked; /* reported as arrived with an ECN mark */
    uint64_t lost;
    uint64_t timeouts;
} apus_port;
/* Stores the first `capacity` source ports of the connection in `ports`, and the number of all of them in `count`. Waits for the
 * engine's next step.
 * If all packets leave by one port, `one_port` is the reason: "off" (no balancer), "peer_too_old", "peer_accepts_one" or
 * "unconfirmed" (NAT or firewall); otherwise it is NULL. `ports` may be NULL with capacity 0, and `one_port` may be NULL. */
int apus_connection_ports(const apus_connection *connection, apus_port *ports, size_t capacity, size_t *count,
                          const char **one_port);

/* Waits for the next message, copies it into `buffer`, and stores its length and the flow that carried it (`flow` may be NULL).
 * With APUS_TOO_SMALL, only the length is stored, and the next call returns this message. Calls of several threads do not wait
 * for each other; each message is returned by one of them. */
int apus_receive(const apus_connection *connection, void *buffer, size_t capacity,
                 uint64_t timeout_ns, size_t *length, uint32_t *flow);

/* ---- Regions ---- */

#define APUS_READ 1
#define APUS_WRITE 2
#define APUS_ATOMIC 4 /* compare-and-swap and fetch-add */

/* Registers memory as a region that peers may use. `access` states the allowed kinds of access, such as APUS_READ | APUS_ATOMIC.
 * Every connected peer that knows the region key has this access. APUS_TOO_MANY if the host has 65536 regions. */
int apus_region_register(const apus_host *host, void *memory, size_t length, int access,
                         apus_region **region);
/* Peers that may use a region: the peer of `connection` until that connection ends, or the peers with these `count` public keys,
 * or no peer (NULL and 0). `connection` must be a connection of the region's host. */
typedef struct apus_grant {
    const apus_connection *connection;
    const uint8_t (*keys)[32];
    size_t count;
} apus_grant;
/* Registers memory as a region that only the peers of `grant` may use. For other peers the region key is useless. Otherwise as
 * apus_region_register. */
int apus_region_register_for(const apus_host *host, void *memory, size_t length, int access,
                             const apus_grant *grant, apus_region **region);
/* Sets which peers may use a region of apus_region_register_for. After the call has returned, no byte of the region is read or
 * changed for a peer that has lost the right. Reads of such a peer that are being answered end as APUS_UNKNOWN with
 * APUS_REASON_WITHDRAWN. APUS_INVALID if the region is one of apus_region_register, or this thread has locked it. */
int apus_region_set_grant(const apus_region *region, const apus_grant *grant);
/* Returns the region key, by which peers name the region. */
uint64_t apus_region_key(const apus_region *region);
/* Locks the region for this thread, and waits for that at most for the timeout. The thread may then read and change the memory:
 * no op of a peer reads or changes it during that time. APUS_INVALID if this thread has locked the region already.
 * Engines that receive packets for the region wait, and serve no other peer. Unlock the region soon, and call no function that
 * waits or that uses the region in another way. Calls of this thread that wait for the region's host fail, and calls of other
 * threads may exceed their timeouts ("Locked regions" above).
 * The thread that has locked a region may free it, which unlocks it. The following is not allowed: to free a region that another
 * thread has locked; to end a thread that has locked a region; and to free, with a region locked, another region of the same
 * host, which may wait forever. */
int apus_region_lock(const apus_region *region, uint64_t timeout_ns);
/* Unlocks the region. The caller must be the thread that has locked it; otherwise APUS_INVALID. */
int apus_region_unlock(const apus_region *region);
/* Atomic access of the region's owner to a word: 8 bytes, little-endian, at a multiple of 8. The arguments `value`, `expected`
 * and so on are numbers in the byte order of the machine. Each call is atomic, also with respect to the ops of peers, and is
 * allowed while the memory must not be accessed in another way. APUS_INVALID if `address` is not a multiple of 8, the word
 * reaches beyond the region, or this thread has locked the region.
 *
 * Stores the word in `value`. */
int apus_region_load(const apus_region *region, uint64_t address, uint64_t *value);
/* Sets the word to `value`. */
int apus_region_store(const apus_region *region, uint64_t address, uint64_t value);
/* Sets the word to `desired` if it is `expected`. Stores the word before the call in `old`. */
int apus_region_compare_and_swap(const apus_region *region, uint64_t address, uint64_t expected,
                                 uint64_t desired, uint64_t *old);
/* Adds `delta` to the word, modulo 2^64. Stores the word before the call in `old`. */
int apus_region_fetch_add(const apus_region *region, uint64_t address, uint64_t delta, uint64_t *old);
/* Withdraws the region, waits until no engine uses its memory any more, and frees the handle. Outstanding answers to reads of
 * peers have one second to end, so that a peer cannot hold the memory. After that they are given up, and the reads end at the
 * peers as APUS_UNKNOWN with APUS_REASON_WITHDRAWN. In the mode "inline" the call drives the engine while it waits. */
void apus_region_free(apus_region *region);

/* ---- Ops ---- */

/* Completion of an op. */
typedef struct apus_completion {
    uint64_t user;       /* from the op */
    int32_t status;      /* APUS_OK, APUS_NOT_SENT, APUS_OP_REFUSED or APUS_UNKNOWN */
    int32_t reason;      /* an apus_reason */
    uint64_t latency_ns; /* from the engine's acceptance to the end; 0 if the op failed */
    uint64_t old;        /* the word before an atomic op; 0 for other ops, and if the op failed */
} apus_completion;

/* Creates a queue for the completions of at most `capacity` outstanding ops, 1 to 1048576. */
int apus_queue_create(const apus_host *host, size_t capacity, apus_queue **queue);
/* Waits for completions, and takes at least one and at most `most` of them. */
int apus_poll(const apus_queue *queue, apus_completion *completions, size_t most,
              uint64_t timeout_ns, size_t *count);
/* Frees the queue. Its outstanding ops continue, and their completions are discarded. The memory of these ops is free only when
 * the connection and all handles of the host have been freed, so poll the completions first. */
void apus_queue_free(apus_queue *queue);

/* Options of an op, and the destination of its completion. */
typedef struct apus_op {
    uint32_t flow;           /* of the connection, from 0 upwards */
    uint64_t deadline_ns;    /* time after which the op is given up; 0: never */
    const apus_queue *queue; /* receives the completion; must be a queue of the connection's host, else APUS_INVALID */
    uint64_t user;           /* returned with the completion */
} apus_op;

/* The following functions submit an op and return at once. `ticket` (may be NULL) gets a number for apus_cancel. They fail with:
 *   APUS_FULL if the limit of either side or of the queue on outstanding ops is reached;
 *   APUS_PEER_DRAINING if the peer is shutting down: outstanding ops continue, and apus_connection_free may follow;
 *   APUS_INVALID if address + length is 2^64 or more, or the address of an atomic op is not a multiple of 8.
 * Reads and writes of at most 1024 bytes are atomic; docs/udp.md describes longer ones and the order of ops. */

/* Writes bytes to the peer's region, from `address` upwards. */
int apus_write(const apus_connection *connection, const apus_op *op, uint64_t region,
               uint64_t address, const void *bytes, size_t length, uint64_t *ticket);
/* Reads bytes of the peer's region, from `address` upwards, into `buffer`. */
int apus_read(const apus_connection *connection, const apus_op *op, uint64_t region,
              uint64_t address, void *buffer, size_t length, uint64_t *ticket);
/* Sends a message to the peer's application. */
int apus_send(const apus_connection *connection, const apus_op *op, const void *bytes,
              size_t length, uint64_t *ticket);
/* Sets the word at `address` of the peer's region to `desired` if it is `expected`. The completion has the word before the op as
 * `old`. If the atomic op ends with APUS_OK, the peer has executed it exactly once; with APUS_UNKNOWN, once or not at all. */
int apus_compare_and_swap(const apus_connection *connection, const apus_op *op, uint64_t region,
                          uint64_t address, uint64_t expected, uint64_t desired, uint64_t *ticket);
/* Adds `delta` to the word at `address` of the peer's region, modulo 2^64. Otherwise as apus_compare_and_swap. */
int apus_fetch_add(const apus_connection *connection, const apus_op *op, uint64_t region,
                   uint64_t address, uint64_t delta, uint64_t *ticket);
/* Cancels an op, which then ends with APUS_REASON_CANCELLED, unless it has ended before. */
int apus_cancel(const apus_connection *connection, uint64_t ticket);

/* ---- Swift by itself, for another stack ----
 *
 * The sender half of one flow (Swift, Algorithm 1). It uses no clock and no thread, and allocates memory only when it is created.
 * The stack reports acknowledgements, losses and timeouts, then reads the allowance.
 * Delays are those of Swift section 3.1: rtt = t6 - t1, endpoint delay = remote_queuing + (t6 - t5). */

/* Creates the sender half of a flow. `settings` are parameters of the profile "paper", such as "base_target=25us fs_range=100us",
 * or NULL; `apus explain swift` lists them. */
int apus_swift_create(const char *settings, apus_swift **swift);

/* An acknowledgement. */
typedef struct apus_ack {
    uint64_t now_ns;            /* a monotonic clock, of any epoch */
    uint64_t rtt_ns;            /* end to end */
    uint64_t endpoint_delay_ns; /* part of the RTT spent in the hosts */
    uint32_t acked_packets;     /* acknowledged for the first time */
    uint8_t hops;               /* switches on the path, from the TTL */
} apus_ack;
/* Reports an acknowledgement. */
int apus_swift_on_ack(apus_swift *swift, const apus_ack *ack);
/* Reports that a packet was declared lost by SACK. */
int apus_swift_on_loss(apus_swift *swift, uint64_t now_ns);
/* Reports that the retransmission timer expired. */
int apus_swift_on_timeout(apus_swift *swift, uint64_t now_ns);

/* Current limits of the flow. */
typedef struct apus_allowance {
    double cwnd;              /* window in packets, may be below 1 */
    uint32_t packets;         /* maximum number in flight, at least 1 */
    uint64_t pacing_delay_ns; /* between packets; 0: ACK-clocked */
    uint64_t rto_ns;          /* retransmission timeout, from the last progress */
    double fabric_cwnd;
    double endpoint_cwnd;
    uint64_t target_ns;       /* of the fabric delay, at the last acknowledgement; 0 before the first one */
} apus_allowance;
/* Stores the current limits of the flow. */
int apus_swift_allowance(const apus_swift *swift, apus_allowance *allowance);
void apus_swift_free(apus_swift *swift);

#ifdef __cplusplus
}
#endif

#endif
