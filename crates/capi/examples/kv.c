/* A key-value server whose clients read by themselves: a get is a one-sided read, a put a message.
 *
 *   kv key FILE NAME [GROUP]       makes the keys of a host, in the group of another file, and prints its line
 *   kv serve FILE                  says where it listens, and serves two peers
 *   kv run FILE ADDRESS SERVER [W] puts and gets against it; without "w" the peer may only get
 *
 * The table is a region of slots of 128 bytes. A read of at most 1024 bytes is atomic, so a get never sees half a put.
 * Peers may read the table; one word counts their gets, by atomic ops in a region of its own. Peers whose names begin
 * with "reader" may not put: they have no say over the table, whatever they send.
 */
#include <apus.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 64
#define KEY 32
#define VALUE 80
#define PEERS 2
#define SECOND UINT64_C(1000000000)
/* No wait is without a bound. */
#define WAIT (60 * SECOND)

typedef struct slot {
    uint64_t version; /* 0: empty; else the number of puts */
    char key[KEY];
    char value[VALUE];
    char unused[8];
} slot;

/* What a peer learns first, and what it asks for. */
typedef struct welcome {
    uint64_t table, counter;
} welcome;
typedef struct put {
    char key[KEY];
    char value[VALUE];
} put;

static void check(int status, const char *what)
{
    if (status != APUS_OK) {
        fprintf(stderr, "%s: status %d: %s\n", what, status, apus_last_error());
        exit(1);
    }
}

static unsigned place(const char *key)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (; *key; key++)
        hash = (hash ^ (unsigned char)*key) * 16777619u;
    return hash % SLOTS;
}

/* Decides who may connect: peers of the key file. */
static int accept_peer(void *context, const apus_incoming *incoming, char *reason, size_t capacity)
{
    (void)context;
    if (incoming->key == NULL || incoming->name[0] == 0) {
        snprintf(reason, capacity, "this server knows its peers by name");
        return 0;
    }
    if (strcmp(incoming->name, "guest") == 0) {
        snprintf(reason, capacity, "%s is not welcome", incoming->name);
        return 0;
    }
    return 1;
}

static apus_host *start(const char *bind, const char *key_file, int server)
{
    apus_config *config;
    apus_host *host;
    check(apus_config_create(bind, key_file, &config), "apus_config_create");
    if (server)
        check(apus_config_set_accept(config, accept_peer, NULL), "apus_config_set_accept");
    check(apus_host_start(config, &host), "apus_host_start");
    apus_config_free(config);
    return host;
}

/* Waits for the end of one op. */
static apus_completion finish(const apus_queue *queue)
{
    apus_completion end;
    size_t count;
    check(apus_poll(queue, &end, 1, WAIT, &count), "apus_poll");
    return end;
}

/* Waits for the end of one op and wants it to be good. */
static void succeed(const apus_queue *queue, const char *what)
{
    apus_completion end = finish(queue);
    if (end.status != APUS_OK) {
        fprintf(stderr, "%s: %s\n", what, apus_reason_text(end.reason));
        exit(1);
    }
}

/* Stores a value. The lock is held for the copies alone. */
static void store(const apus_region *region, slot *table, const put *put)
{
    check(apus_region_lock(region, WAIT), "apus_region_lock");
    for (unsigned i = 0; i < SLOTS; i++) {
        slot *slot = &table[(place(put->key) + i) % SLOTS];
        if (slot->version == 0 || memcmp(slot->key, put->key, KEY) == 0) {
            memcpy(slot->key, put->key, KEY);
            memcpy(slot->value, put->value, VALUE);
            slot->version++;
            break;
        }
    }
    check(apus_region_unlock(region), "apus_region_unlock");
}

static int serve(const char *key_file)
{
    apus_host *host = start("127.0.0.1:0", key_file, 1);
    printf("listening on %s\n", apus_host_address(host));
    fflush(stdout);

    slot *table = calloc(SLOTS, sizeof *table);
    uint64_t *gets = calloc(1, sizeof *gets);
    if (table == NULL || gets == NULL) {
        fprintf(stderr, "no memory for the table\n");
        exit(1);
    }
    apus_grant nobody = { NULL, NULL, 0 };
    apus_region *region, *counter;
    check(apus_region_register_for(host, table, SLOTS * sizeof *table, APUS_READ, &nobody, &region),
          "apus_region_register_for");
    check(apus_region_register_for(host, gets, sizeof *gets, APUS_ATOMIC, &nobody, &counter),
          "apus_region_register_for");
    apus_queue *queue;
    check(apus_queue_create(host, 16, &queue), "apus_queue_create");
    uint8_t keys[PEERS][32];
    int failed = 0;
    for (int peer = 0; peer < PEERS; peer++) {
        apus_connection *connection;
        check(apus_accept(host, WAIT, &connection), "apus_accept");
        check(apus_connection_peer_key(connection, &keys[peer]), "apus_connection_peer_key");
        const char *name = apus_connection_peer_name(connection);
        int may_put = strncmp(name, "reader", 6) != 0;
        /* From now on this peer may use the regions too. */
        apus_grant known = { NULL, (const uint8_t (*)[32])keys, (size_t)peer + 1 };
        check(apus_region_set_grant(region, &known), "apus_region_set_grant");
        check(apus_region_set_grant(counter, &known), "apus_region_set_grant");
        welcome hello = { apus_region_key(region), apus_region_key(counter) };
        /* The deadline is before the end of the wait for the op, so a peer that takes no messages does not stop this server. */
        apus_op op = { .queue = queue, .deadline_ns = WAIT / 2 };
        put put;
        size_t length;
        unsigned puts = 0;
        int status = apus_send(connection, &op, &hello, sizeof hello, NULL);
        while (status == APUS_OK) {
            finish(queue); /* a message fails only if the connection ends, as the next call says */
            status = apus_receive(connection, &put, sizeof put, WAIT, &length, NULL);
            if (status != APUS_OK)
                break;
            char answer = 'n';
            if (length == sizeof put && may_put) {
                put.key[KEY - 1] = put.value[VALUE - 1] = 0;
                store(region, table, &put);
                answer = 'y';
                puts++;
            }
            status = apus_send(connection, &op, &answer, 1, NULL);
        }
        /* A peer that fails ends its own service alone. */
        if (status != APUS_ENDED) {
            printf("%s: status %d: %s\n", name, status, apus_last_error());
            failed = 1;
        }
        printf("%s: %u puts\n", name, puts);
        apus_connection_free(connection);
    }
    uint64_t count;
    check(apus_region_load(counter, 0, &count), "apus_region_load");
    printf("%" PRIu64 " gets\n", count);
    apus_region_free(region);
    apus_region_free(counter);
    apus_queue_free(queue);
    apus_host_free(host);
    free(table);
    free(gets);
    return failed;
}

/* A get: reads of slots until the key or an empty slot is found. */
static int get(const apus_connection *connection, const apus_queue *queue, welcome hello,
               const char *key, char value[VALUE])
{
    apus_op op = { .queue = queue, .deadline_ns = WAIT };
    check(apus_fetch_add(connection, &op, hello.counter, 0, 1, NULL), "apus_fetch_add");
    succeed(queue, "apus_fetch_add");
    for (unsigned i = 0; i < SLOTS; i++) {
        slot slot;
        uint64_t address = (place(key) + i) % SLOTS * sizeof slot;
        check(apus_read(connection, &op, hello.table, address, &slot, sizeof slot, NULL), "apus_read");
        succeed(queue, "apus_read");
        if (slot.version == 0)
            return 0;
        if (strncmp(slot.key, key, KEY) == 0) {
            memcpy(value, slot.value, VALUE);
            return 1;
        }
    }
    return 0;
}

static int run(const char *key_file, const char *address, const char *server, int may_put)
{
    apus_host *host = start("127.0.0.1:0", key_file, 0);
    apus_connection *connection;
    int status = apus_connect_to(host, address, server, 1, WAIT, &connection);
    if (status != APUS_OK) {
        printf("not connected: status %d: %s\n", status, apus_last_error());
        apus_host_free(host);
        return 1;
    }
    printf("connected to %s\n", apus_connection_peer_name(connection));
    apus_queue *queue;
    check(apus_queue_create(host, 16, &queue), "apus_queue_create");
    welcome hello;
    size_t length;
    check(apus_receive(connection, &hello, sizeof hello, WAIT, &length, NULL), "apus_receive");
    apus_op op = { .queue = queue };
    unsigned stored = 0, found = 0;
    for (unsigned i = 0; i < 40; i++) {
        put put;
        memset(&put, 0, sizeof put);
        snprintf(put.key, KEY, "key %u", i % 20);
        snprintf(put.value, VALUE, "value %u", i);
        check(apus_send(connection, &op, &put, sizeof put, NULL), "apus_send");
        succeed(queue, "apus_send");
        char answer;
        check(apus_receive(connection, &answer, 1, WAIT, &length, NULL), "apus_receive");
        stored += answer == 'y';
        char value[VALUE];
        int there = get(connection, queue, hello, put.key, value);
        /* A peer that may not put finds what another has put last. */
        char last[VALUE];
        snprintf(last, VALUE, "value %u", may_put ? i : i % 20 + 20);
        found += there && strcmp(value, last) == 0;
    }
    printf("%u puts, %u gets found\n", stored, found);
    char value[VALUE];
    printf("missing key: %s\n", get(connection, queue, hello, "nothing", value) ? "found" : "not found");
    /* The table is for reads alone. */
    slot forged;
    memset(&forged, 1, sizeof forged);
    check(apus_write(connection, &op, hello.table, 0, &forged, sizeof forged, NULL), "apus_write");
    printf("write: %s\n", apus_reason_text(finish(queue).reason));
    check(apus_fetch_add(connection, &op, hello.table, 0, 1, NULL), "apus_fetch_add");
    printf("fetch_add: %s\n", apus_reason_text(finish(queue).reason));
    check(apus_close(connection, WAIT), "apus_close");
    apus_queue_free(queue);
    apus_connection_free(connection);
    apus_host_free(host);
    return 0;
}

static int key(const char *file, const char *name, const char *group)
{
    char line[256];
    check(apus_key_create_pair(file, name, group), "apus_key_create_pair");
    check(apus_key_public(file, line, sizeof line), "apus_key_public");
    puts(line);
    return 0;
}

int main(int count, char **words)
{
    if (count >= 4 && strcmp(words[1], "key") == 0)
        return key(words[2], words[3], count > 4 ? words[4] : NULL);
    if (count == 3 && strcmp(words[1], "serve") == 0)
        return serve(words[2]);
    if (count >= 5 && strcmp(words[1], "run") == 0)
        return run(words[2], words[3], words[4], count > 5);
    fprintf(stderr, "usage: kv key FILE NAME [GROUP] | serve FILE | run FILE ADDRESS SERVER [w]\n");
    return 2;
}
