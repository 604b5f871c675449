/* Ping-pong, bulk writes and reads between two processes.
 *
 *   pingpong key FILE                 makes a key
 *   pingpong serve FILE               says where it listens, serves one peer
 *   pingpong run FILE ADDRESS [COUNT] measures against it
 */
#include <apus.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PING 64
#define BLOCK (256u << 10)
#define BLOCKS 64
#define WINDOW 8
#define SECOND UINT64_C(1000000000)

static void check(int status, const char *what)
{
    if (status != APUS_OK) {
        fprintf(stderr, "%s: status %d: %s\n", what, status, apus_last_error());
        exit(1);
    }
}

/* Memory of zeros, or the end of the program. */
static void *zeros(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (memory == NULL) {
        fprintf(stderr, "no memory for %zu times %zu bytes\n", count, size);
        exit(1);
    }
    return memory;
}

static apus_host *start(const char *bind, const char *key_file)
{
    apus_config *config;
    apus_host *host;
    check(apus_config_create(bind, key_file, &config), "apus_config_create");
    check(apus_config_set(config, "mode", "shared"), "apus_config_set");
    check(apus_host_start(config, &host), "apus_host_start");
    apus_config_free(config);
    return host;
}

/* Waits for the end of one op and wants it to be good. */
static apus_completion finish(const apus_queue *queue)
{
    apus_completion end;
    size_t count;
    check(apus_poll(queue, &end, 1, 30 * SECOND, &count), "apus_poll");
    if (end.status != APUS_OK) {
        fprintf(stderr, "op %" PRIu64 ": %s\n", end.user, apus_reason_text(end.reason));
        exit(1);
    }
    return end;
}

static int serve(const char *key_file)
{
    apus_host *host = start("127.0.0.1:0", key_file);
    printf("listening on %s\n", apus_host_address(host));
    fflush(stdout);

    unsigned char *memory = zeros(BLOCKS, BLOCK);
    apus_region *region;
    check(apus_region_register(host, memory, (size_t)BLOCKS * BLOCK, APUS_READ | APUS_WRITE, &region),
          "apus_region_register");
    apus_connection *connection;
    check(apus_accept(host, 60 * SECOND, &connection), "apus_accept");
    apus_queue *queue;
    check(apus_queue_create(host, 16, &queue), "apus_queue_create");

    /* The peer learns the region's key by a message, then gets each of its own back. */
    uint64_t key = apus_region_key(region);
    apus_op op = { .queue = queue };
    check(apus_send(connection, &op, &key, sizeof key, NULL), "apus_send");
    finish(queue);
    unsigned char message[PING];
    size_t length;
    int status;
    while ((status = apus_receive(connection, message, sizeof message, 60 * SECOND, &length, NULL))
           == APUS_OK) {
        op.user++;
        check(apus_send(connection, &op, message, length, NULL), "apus_send");
        finish(queue);
    }
    /* The peer has taken all echoes, and closes. */
    if (status != APUS_ENDED)
        check(status, "apus_receive");
    apus_region_free(region);
    apus_queue_free(queue);
    apus_connection_free(connection);
    apus_host_free(host);
    free(memory);
    return 0;
}

static int compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static void pings(const apus_connection *connection, const apus_queue *queue, unsigned count)
{
    uint64_t *latencies = zeros(count, sizeof *latencies);
    unsigned char out[PING], in[PING];
    for (unsigned i = 0; i < count; i++) {
        memset(out, (int)(i & 0xff), sizeof out);
        apus_op op = { .queue = queue, .user = i, .deadline_ns = 30 * SECOND };
        size_t length;
        check(apus_send(connection, &op, out, sizeof out, NULL), "apus_send");
        check(apus_receive(connection, in, sizeof in, 30 * SECOND, &length, NULL), "apus_receive");
        latencies[i] = finish(queue).latency_ns;
        if (length != sizeof in || memcmp(in, out, length) != 0) {
            fprintf(stderr, "ping %u came back different\n", i);
            exit(1);
        }
    }
    qsort(latencies, count, sizeof *latencies, compare);
    printf("pings %u, p50 %.1f us, p99 %.1f us\n", count, (double)latencies[count / 2] / 1e3,
           (double)latencies[count * 99 / 100] / 1e3);
    free(latencies);
}

/* Writes all blocks with some under way at a time, then reads them back. */
static void bulk(const apus_connection *connection, const apus_queue *queue, uint64_t key)
{
    unsigned char *out = zeros(BLOCKS, BLOCK), *in = zeros(BLOCKS, BLOCK);
    for (size_t i = 0; i < (size_t)BLOCKS * BLOCK; i++)
        out[i] = (unsigned char)(i * 2654435761u >> 24);
    for (int reading = 0; reading < 2; reading++) {
        unsigned submitted = 0, done = 0;
        while (done < BLOCKS) {
            while (submitted < BLOCKS && submitted - done < WINDOW) {
                apus_op op = { .queue = queue, .user = submitted };
                uint64_t at = (uint64_t)submitted * BLOCK;
                int status = reading ? apus_read(connection, &op, key, at, in + at, BLOCK, NULL)
                                     : apus_write(connection, &op, key, at, out + at, BLOCK, NULL);
                if (status == APUS_FULL)
                    break; /* poll first */
                check(status, "submit");
                submitted++;
            }
            finish(queue);
            done++;
        }
    }
    if (memcmp(in, out, (size_t)BLOCKS * BLOCK) != 0) {
        fprintf(stderr, "what was read is not what was written\n");
        exit(1);
    }
    printf("bulk %zu bytes each way\n", (size_t)BLOCKS * BLOCK);
    free(in);
    free(out);
}

/* What goes wrong ends with a reason, or with an error that says what is wrong. */
static void failures(const apus_connection *connection, const apus_queue *queue, uint64_t key)
{
    unsigned char byte = 1;
    apus_op op = { .queue = queue };
    apus_completion end;
    size_t count;
    check(apus_write(connection, &op, key, (uint64_t)BLOCKS * BLOCK, &byte, 1, NULL), "apus_write");
    check(apus_poll(queue, &end, 1, 30 * SECOND, &count), "apus_poll");
    printf("beyond the region: status %d: %s\n", end.status, apus_reason_text(end.reason));
    if (end.status != APUS_OP_REFUSED || end.reason != APUS_REASON_OUT_OF_BOUNDS)
        exit(1);
    op.flow = 7;
    int status = apus_send(connection, &op, &byte, 1, NULL);
    printf("no such flow: status %d: %s\n", status, apus_last_error());
    if (status != APUS_INVALID)
        exit(1);
    /* A key file that is missing does not mean that none is wanted. */
    apus_config *config;
    status = apus_config_create("127.0.0.1:0", NULL, &config);
    printf("no key file: status %d: %s\n", status, apus_last_error());
    if (status != APUS_INVALID)
        exit(1);
    /* One that is cancelled has ended before, or ends with the reason. */
    uint64_t ticket;
    op.flow = 0;
    check(apus_write(connection, &op, key, 0, &byte, 1, &ticket), "apus_write");
    check(apus_cancel(connection, ticket), "apus_cancel");
    check(apus_poll(queue, &end, 1, 30 * SECOND, &count), "apus_poll");
    if (end.status != APUS_OK && end.reason != APUS_REASON_CANCELLED)
        exit(1);
    if (apus_poll(queue, &end, 1, 0, &count) != APUS_TIMEOUT)
        exit(1);
}

/* What seals packets is chosen by name, and a peer may take one cipher only. */
static void ciphers(const apus_host *host, const char *key_file)
{
    apus_config *config;
    check(apus_config_create_insecure("127.0.0.1:0", &config), "apus_config_create_insecure");
    int status = apus_config_set(config, "cipher", "aegis-128x");
    printf("nothing to seal: status %d: %s\n", status, apus_last_error());
    if (status != APUS_INVALID)
        exit(1);
    apus_config_free(config);
    check(apus_config_create("127.0.0.1:0", key_file, &config), "apus_config_create");
    status = apus_config_set(config, "accept_ciphers", "aes-256-gcm,aegis-128");
    printf("no such cipher: status %d: %s\n", status, apus_last_error());
    if (status != APUS_INVALID)
        exit(1);
    apus_host *aegis;
    check(apus_config_set(config, "cipher", "aegis-128x"), "apus_config_set");
    check(apus_config_set(config, "accept_ciphers", "aegis-128x"), "apus_config_set");
    check(apus_host_start(config, &aegis), "apus_host_start");
    apus_config_free(config);
    /* This side proposes the default and takes both. */
    apus_connection *connection;
    status = apus_connect(host, apus_host_address(aegis), 1, 30 * SECOND, &connection);
    printf("another cipher: status %d: %s\n", status, apus_last_error());
    if (status != APUS_CIPHER_REFUSED)
        exit(1);
    check(apus_connect(aegis, apus_host_address(host), 1, 30 * SECOND, &connection), "apus_connect");
    apus_connection_free(connection);
    apus_host_free(aegis);
}

static int run(const char *key_file, const char *peer, unsigned count)
{
    apus_host *host = start("127.0.0.1:0", key_file);
    /* The same keys once more change nothing. */
    check(apus_host_set_keys(host, key_file), "apus_host_set_keys");
    apus_connection *connection;
    check(apus_connect(host, peer, 1, 30 * SECOND, &connection), "apus_connect");
    apus_queue *queue;
    check(apus_queue_create(host, 16, &queue), "apus_queue_create");
    uint64_t key;
    size_t length;
    check(apus_receive(connection, &key, sizeof key, 30 * SECOND, &length, NULL), "apus_receive");

    pings(connection, queue, count);
    bulk(connection, queue, key);
    failures(connection, queue, key);
    ciphers(host, key_file);

    apus_flow_state state;
    check(apus_connection_state(connection, 0, &state), "apus_connection_state");
    apus_stats stats;
    check(apus_host_stats(host, &stats), "apus_host_stats");
    printf("window %.2f packets, target %.0f us; %" PRIu64 " ops, fabric RTT p50 %.1f us\n",
           state.cwnd, (double)state.target_ns / 1e3, stats.ops, stats.fabric_rtt_p50_us);

    check(apus_close(connection, 30 * SECOND), "apus_close");
    apus_queue_free(queue);
    apus_connection_free(connection);
    apus_host_free(host);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "key") == 0) {
        check(apus_key_create(argv[2]), "apus_key_create");
        return 0;
    }
    if (argc == 3 && strcmp(argv[1], "serve") == 0)
        return serve(argv[2]);
    if ((argc == 4 || argc == 5) && strcmp(argv[1], "run") == 0) {
        unsigned count = argc == 5 ? (unsigned)strtoul(argv[4], NULL, 10) : 1000;
        return run(argv[2], argv[3], count > 0 ? count : 1);
    }
    fprintf(stderr, "pingpong key FILE | serve FILE | run FILE ADDRESS [COUNT]\n");
    return 2;
}
